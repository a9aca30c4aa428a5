"""`weft hold` and `weft release`: whether the launcher starts a part again that has ended."""

from pathlib import Path

from weft_cli import where
from weft_cli.embedded import run_file
from weft_cli.embedded.state import write_private
from weft_cli.failure import Exit, Failure


def hold(folder: Path | None, part: str) -> None:
    """Leave a part down once it has ended. What runs, runs on."""
    state = where.state(folder)
    record = run_file.read(state)
    if record is None or not record.alive():
        raise Failure(f"no mesh runs on {state.folder}: start one with `weft up`", Exit.NOT_RUNNING)
    names = [row.name for row in record.parts]
    if part not in names:
        raise Failure(f"this mesh has no part {part!r}; it has {', '.join(names)}")
    write_private(state.held(part), "")
    print(f"{part} is not started again when it ends, until `weft release {part}`")


def release(folder: Path | None, part: str) -> None:
    """Let the launcher start a held part again."""
    held = where.state(folder).held(part)
    if not held.exists():
        raise Failure(f"{part} is not held")
    held.unlink()
    print(f"{part} is started again when it ends")

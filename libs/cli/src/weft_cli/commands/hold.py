"""`weft hold` and `weft release`: whether the launcher starts a part again that has ended."""

from pathlib import Path

from weft_client.failure import Exit, Failure
from weft_embedded import run_file
from weft_embedded.state import write_private

from weft_cli import locate
from weft_cli.outcome import tell


def hold(folder: Path | None, part: str, *, as_json: bool) -> None:
    """Leave a part down once it has ended. What runs, runs on."""
    state = locate.state(folder)
    record = run_file.read(state)
    if record is None or not record.alive():
        raise Failure(f"no mesh runs on {state.folder}: start one with `weft up`", Exit.NOT_RUNNING)
    names = [row.name for row in record.parts]
    if part not in names:
        raise Failure(f"this mesh has no part {part!r}; it has {', '.join(names)}")
    write_private(state.held(part), "")
    until = f"until `weft release {part}`"
    tell(f"{part} is not started again when it ends, {until}", {"process": part, "held": True}, as_json=as_json)


def release(folder: Path | None, part: str, *, as_json: bool) -> None:
    """Let the launcher start a held part again."""
    held = locate.state(folder).held(part)
    if not held.exists():
        raise Failure(f"{part} is not held")
    held.unlink()
    tell(f"{part} is started again when it ends", {"process": part, "held": False}, as_json=as_json)

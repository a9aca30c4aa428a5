"""`weft bundle`: what a machine without a network is installed from, as a folder or one file."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from weft_client.failure import Failure
from weft_client.units import size
from weft_embedded.bundle import making
from weft_embedded.bundle.contents import BadBundle, digest_of

from weft_cli.outcome import tell


def run(target: Path, models: Sequence[Path], *, as_json: bool) -> None:
    """Make it. Raises Failure: it is there already, or something that belongs to it can't be had."""
    to = target.expanduser().absolute()
    files = [each.expanduser().absolute() for each in models]
    try:
        if to.suffix == ".tar":
            _packed(to, files)
            digest: str | None = digest_of(to)
            held = to.stat().st_size
        else:
            making.make(to, files)
            digest = None
            held = sum(each.stat().st_size for each in to.rglob("*") if each.is_file())
    except (BadBundle, OSError) as error:
        raise Failure(str(error)) from None
    said = f"{to} holds Weft for machines like this one, {size(held)}"
    how = f"unpack it there, and run its install; its SHA-256 is {digest}" if digest else "run its install there"
    tell(f"{said}\n{how}", {"bundle": str(to), "bytes": held, "sha256": digest}, as_json=as_json)


def _packed(file: Path, models: Sequence[Path]) -> None:
    if file.exists():
        raise BadBundle(f"{file} is there already: name another, or move it away")
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=file.parent, prefix=".bundle-") as made:
        making.make(Path(made) / "bundle", models)
        part = Path(made) / "tar"
        making.pack(Path(made) / "bundle", part)
        part.replace(file)

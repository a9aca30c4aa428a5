"""`weft deploy` of a file of this machine, for a mesh whose workers are on others: it is sent."""

from pathlib import Path
from typing import TYPE_CHECKING

from weft_client.failure import Exit, Failure
from weft_client.gateway import Gateway
from weft_client.local_model import LocalModel, local_model
from weft_client.sending import Sending, Sent
from weft_client.units import size

from weft_cli.commands.upload_bar import UploadBar

if TYPE_CHECKING:
    from weft_api import Deployed

_PATH = "path:"


def sent_path(gateway: Gateway, source: str, *, upload: bool) -> Path | None:
    """The file that is to be sent; None: the source lies where workers find it. `upload`: it was asked for.

    A GGUF file that is here is sent to a mesh elsewhere; `path:` names one on the workers. Raises Failure with status 2
    for what isn't here.
    """
    path = Path(source.removeprefix(_PATH)).expanduser()
    if upload:
        if not path.exists():
            raise Failure(f"--upload {source}: there is no such file on this machine", Exit.USAGE)
        return path.absolute()
    here = not source.startswith(_PATH) and path.suffix.lower() == ".gguf" and path.is_file()
    return path.absolute() if here and not gateway.near else None


def looked_at(path: Path, *, quiet: bool) -> LocalModel:
    """What the file is, whole. Raises Failure."""
    if not quiet:
        print(f"reading {path}: its hash tells the mesh what comes", flush=True)
    bar = UploadBar(quiet=quiet)
    try:
        return local_model(path, lambda done, total: bar.told(Sent(done, total)))
    finally:
        bar.clear()


def send(gateway: Gateway, answer: "Deployed", model: LocalModel, *, quiet: bool) -> int:
    """Send what the mesh lacks; how many bytes went. Raises Failure, also where it is interrupted."""
    upload = answer.get("upload", "")
    if not upload:
        raise Failure(f"{gateway.url} takes no files: upgrade the mesh, then deploy it again")
    bar = UploadBar(quiet=quiet)
    sending = Sending(gateway, upload, model, bar.told)
    try:
        sending.run()
    except KeyboardInterrupt:
        bar.clear()
        now = sending.progress
        told = f"{size(now.there)} of {size(now.size)} are sent; the same command goes on"
        raise Failure(told, Exit.INTERRUPTED) from None
    finally:
        bar.clear()
    if not quiet:
        said = f"{size(sending.sent)} sent" if sending.sent else "the mesh has it already: nothing is sent"
        print(f"  {said}", flush=True)
    return sending.sent

"""`weft deploy` of a file or folder of this machine, for a mesh whose workers are on others: it is sent."""

from pathlib import Path
from typing import TYPE_CHECKING

from weft_client.failure import Exit, Failure
from weft_client.gateway import Gateway
from weft_client.local_files import LocalModel
from weft_client.local_folder import is_model_folder
from weft_client.local_model import local_model
from weft_client.sending import Sending, Sent
from weft_client.sources import fileless
from weft_client.units import size
from weft_sources.words import candidates

from weft_cli.commands.upload_bar import UploadBar

if TYPE_CHECKING:
    from weft_api import Deployed

_PATH = "path:"


def sent_path(gateway: Gateway, source: str, *, upload: bool) -> Path | None:
    """The file or folder that is to be sent; None: the source lies where workers find it. `upload`: it was asked for.

    A GGUF file or a folder of safetensors that is here is sent to a mesh elsewhere; `path:` names one on the workers.
    Raises Failure with status 2 for what isn't here.
    """
    path = Path(source.removeprefix(_PATH)).expanduser()
    if upload:
        if not path.exists():
            raise Failure(f"--upload {source}: there is no such file on this machine", Exit.USAGE)
        return path.absolute()
    if gateway.near or source.startswith(_PATH) or fileless(source):
        return None
    here = is_model_folder(path) or (path.suffix.lower() == ".gguf" and path.is_file())
    return path.absolute() if here else None


def looked_at(path: Path, *, quiet: bool) -> LocalModel:
    """What the model is, whole, and what of a folder is left out. Raises Failure."""
    if not quiet:
        print(f"reading {path}: its hash tells the mesh what comes", flush=True)
    bar = UploadBar(quiet=quiet)
    try:
        model = local_model(path, lambda done, total: bar.told(Sent(done, total)))
    finally:
        bar.clear()
    if model.others and not quiet:
        print(
            f"  {len(model.others)} of what lies there is not sent, as no engine takes it: {candidates(model.others)}"
        )
    return model


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

"""A model of this machine that is to be sent: a GGUF file, or a folder of safetensors (`local_folder`)."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from weft_client.failure import Failure
from weft_client.local_files import LocalModel, hashed_files
from weft_client.local_folder import local_folder

_STRANGE: Final = re.compile(r"[^A-Za-z0-9._+@=-]+")
_LONGEST: Final = 255


def local_model(path: Path, hashed: Callable[[int, int], None] = lambda _done, _size: None) -> LocalModel:
    """Read the header, then hash all of the files; `hashed` is told how many bytes of how many are. Given one part of a
    split file, the first, all are taken. Raises Failure for what is no whole model."""
    if path.is_dir():
        return local_folder(path, hashed)
    if path.exists() and not path.is_file():  # a pipe would never end
        raise Failure(f"{path} can't be sent: it is neither a file nor a folder")
    from weft_gguf.header import GgufError
    from weft_gguf.split import read_model
    from weft_gguf.weights import weights_of_header

    try:
        header, paths = read_model(path)
    except GgufError as error:
        raise Failure(f"{path} can't be sent: {error}") from None
    except OSError as error:
        raise Failure(f"{path} can't be read: {error.strerror or error}") from None
    if header.kind == "adapter":
        raise Failure(f"{path} is an adapter and no model")
    files = hashed_files({sent_name(each.name): each for each in paths}, hashed)
    return LocalModel(files, weights_of_header(header))


def sent_name(name: str) -> str:
    """A file's name as a mesh takes it: letters, digits and signs, the end as it is."""
    return _STRANGE.sub("-", name).lstrip(".-+@=")[-_LONGEST:].lstrip(".-+@=") or "model.gguf"

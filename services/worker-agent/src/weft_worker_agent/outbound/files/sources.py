"""Where a model's files lie on this node."""

import importlib
import os
from dataclasses import dataclass
from pathlib import Path

from weft_contracts.engines import FileFormat
from weft_contracts.facts.source import (
    BuiltinSource,
    HfSource,
    HttpsSource,
    PathSource,
    S3Source,
    SimulatedSource,
    Source,
    UploadSource,
)
from weft_contracts.source_keys import source_key

BUILTINS = {"tiny": "weft_tiny", "tiny-embed": "weft_tiny_embed"}
"""Models that ship as packages: each offers `gguf_path()` and `folder()`."""


class SourceMissing(Exception):
    """A source that this node can't offer; the message is a sentence for people."""


@dataclass(frozen=True, slots=True)
class Files:
    """A model on disk: the file or folder that an engine loads, and where its metadata files lie."""

    path: Path
    metadata_folders: tuple[Path, ...]
    shipped: bool = False
    """They came with Weft."""


def files_of(source: Source, format: FileFormat) -> Files | None:
    """The files of a source, in this format where there are several; None for one without files. Raises SourceMissing.

    Whether anything is there is not looked at: that is what inspections and engines do.
    """
    match source:
        case SimulatedSource():
            return None
        case BuiltinSource(name=name):
            return _builtin(name, format)
        case PathSource(path=text):
            path = Path(text)
            if not path.is_absolute():
                raise SourceMissing(f"{text!r} is no absolute path: workers have no common working folder")
            return Files(path, (path if os.path.isdir(path) else path.parent,))
        case HfSource() | HttpsSource() | S3Source() | UploadSource():
            raise SourceMissing(f"{source_key(source)} is not on this node")


def _builtin(name: str, format: FileFormat) -> Files:
    module = BUILTINS.get(name)
    if module is None:
        raise SourceMissing(f"there is no built-in model {name!r}; there are {', '.join(BUILTINS)}")
    try:
        package = importlib.import_module(module)
    except ImportError:
        raise SourceMissing(f"the built-in model {name!r} is not installed on this node") from None
    gguf, folder = Path(package.gguf_path()), Path(package.folder())
    paths: dict[FileFormat, Path] = {"gguf": gguf, "safetensors": folder}
    return Files(paths[format], (gguf.parent, folder), shipped=True)

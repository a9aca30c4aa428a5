"""What people type for a model's source: which kind it is, what the model is called after it, what can't be served."""

import re
import shlex
import unicodedata
from pathlib import Path
from typing import NamedTuple

from weft_contracts.engines import BUILTIN, EngineProfile
from weft_contracts.facts.values import EngineName
from weft_contracts.names import LONGEST_MODEL_NAME, NAME

from weft_client.failure import Exit, Failure

BUILTINS = ("tiny", "tiny-embed")
"""Models that ship with the project."""
SIMULATED = "simulated"
"""The source for engines that take no files."""
FILELESS = (*BUILTINS, SIMULATED)
"""Sources that are no files of the workers'."""
_ENGINE = re.compile(r"engine:([a-z0-9][a-z0-9._-]{0,39})")
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(//)?")
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_STRANGE = re.compile(r"[^A-Za-z0-9._:/@-]+")


def engine_of(source: str) -> str | None:
    """The engine that `engine:NAME` names: one that takes no files. None for any other source."""
    named = _ENGINE.fullmatch(source)
    return named[1] if named is not None else None


def fileless(source: str) -> bool:
    """Whether a source is no file of the workers'."""
    return source in FILELESS or engine_of(source) is not None


class ServerSource(NamedTuple):
    """A model of a server elsewhere, as people type it: `ENGINE:URL#MODEL`."""

    engine: EngineName
    url: str
    model: str


def server_source(source: str) -> ServerSource | None:
    """The server and its model that a source names; None for any other source.

    Raises Failure with status 2 where one of both lacks.
    """
    engine, colon, rest = source.partition(":")
    if not colon or engine not in BUILTIN or not _asks_a_server(BUILTIN[engine]):
        return None
    url, _, model = rest.partition("#")
    if not url or not model:
        example = f"{engine}:http://10.0.0.5:11434/v1#llama3.2"
        raise Failure(f"{source}: want {engine}:URL#MODEL, for example {example}", Exit.USAGE)
    return ServerSource(engine, url, model)


def _asks_a_server(profile: EngineProfile) -> bool:
    return {"base_url", "model"} <= profile.arguments.keys()


def local_path(source: str) -> str:
    """The path of a file or folder, from the root on: a worker may have started elsewhere.

    Raises Failure with status 2 for what is no path: an address, a name on a hub, a word that is no file here.
    """
    path = Path(source).expanduser()
    if path.exists():
        return str(path.absolute())
    address = _ADDRESS.match(source)
    if address is not None and address[0] == "engine:":
        raise Failure(f"{source}: want engine:NAME, with the name of an engine as `weft engines` lists it", Exit.USAGE)
    if address is not None and address[1].lower() == "file":
        raise Failure(f"{source}: give the path alone, without {address[0]}", Exit.USAGE)
    if address is not None or (_REPOSITORY.fullmatch(source) and not source.lower().endswith(".gguf")):
        what = "an address" if address is not None and address[2] else "neither a file here nor a path"
        raise Failure(
            f"{source} is {what}, and only files on a worker's disk are served today: download the model's GGUF file"
            f" there, then `weft deploy {shlex.quote(_there(source))}`",
            Exit.USAGE,
        )
    if "/" not in source:
        raise Failure(
            f"{source} is neither a built-in model ({', '.join(FILELESS)}) nor a file here: give a path", Exit.USAGE
        )
    return str(path.absolute())


def name_for(source: str) -> str:
    """What a model is called whose source is all that is known: made of what a name may have.

    Raises Failure with status 2 where nothing is left of the file's name.
    """
    if source in FILELESS:
        return source
    if (engine := engine_of(source)) is not None:
        return engine
    server = server_source(source)
    if server is not None and re.fullmatch(NAME, server.model) and len(server.model) <= LONGEST_MODEL_NAME:
        return server.model
    source = source if server is None else server.model
    stem = re.sub(r"\.gguf$", "", Path(source).name, flags=re.IGNORECASE)
    if re.fullmatch(NAME, stem) and len(stem) <= LONGEST_MODEL_NAME:
        return stem
    plain = unicodedata.normalize("NFKD", stem).encode("ascii", "ignore").decode()
    made = _STRANGE.sub("-", plain).lstrip("._:/@-")[:LONGEST_MODEL_NAME].rstrip("-")
    if not made:
        raise Failure(f"no name can be made of {stem!r}: give the model one with --name NAME", Exit.USAGE)
    return made


def _there(source: str) -> str:
    """An example of where a worker could have it."""
    name = re.split(r"[/:]", source.partition("?")[0].rstrip("/"))[-1] or "model"
    return f"/models/{name if name.lower().endswith('.gguf') else f'{name}.gguf'}"

"""What people type for a model's source: which kind it is, what the model is called after it, what can't be served."""

import re
import unicodedata
from pathlib import Path
from typing import NamedTuple

from weft_contracts.engines import BUILTIN, EngineProfile
from weft_contracts.facts.source import HfSource
from weft_contracts.facts.values import EngineName
from weft_contracts.names import LONGEST_MODEL_NAME, NAME

from weft_client.failure import Exit, Failure
from weft_client.remote_sources import FORMS, remote_source, title_of

BUILTINS = ("tiny", "tiny-embed")
"""Models that ship with the project."""
SIMULATED = "simulated"
"""The source for engines that take no files."""
FILELESS = (*BUILTINS, SIMULATED)
"""Sources that are no files of the workers'."""
_ENGINE = re.compile(r"engine:([a-z0-9][a-z0-9._-]{0,39})")
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(//)?")
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


def plain(source: str) -> str:
    """A source without the word for its kind, where that is `path:`, `builtin:` or `simulated:`.

    Raises Failure with status 2 for `builtin:` of a model that doesn't ship with the project.
    """
    kind, colon, rest = source.partition(":")
    if not colon:
        return source
    if kind == "simulated" and not rest:
        return SIMULATED
    if kind == "builtin":
        if rest not in BUILTINS:
            raise Failure(f"{source}: there are {', '.join(f'builtin:{each}' for each in BUILTINS)}", Exit.USAGE)
        return rest
    return local_path(rest, named=True) if kind == "path" else source


def local_path(source: str, *, named: bool = False) -> str:
    """The path of a file or folder, from the root on: a worker may have started elsewhere.

    `named`: it was said to be one. Raises Failure with status 2 for what is no path: an address, a name on a hub, a
    word that is no file here.
    """
    if named and source.startswith("/"):
        return source
    path = Path(source).expanduser()
    if path.exists() or (named and source):
        return str(path.absolute())
    address = _ADDRESS.match(source)
    if address is not None and address[0] == "engine:":
        raise Failure(f"{source}: want engine:NAME, with the name of an engine as `weft engines` lists it", Exit.USAGE)
    if address is not None and address[1].lower() == "file":
        raise Failure(f"{source}: give the path alone, without {address[0]}", Exit.USAGE)
    if address is not None:
        raise Failure(f"{source} is no source that workers know: there are {FORMS}", Exit.USAGE)
    if "/" not in source:
        raise Failure(
            f"{source} is neither a built-in model ({', '.join(FILELESS)}) nor a file here: give a path, or a hub's"
            " repository as owner/name",
            Exit.USAGE,
        )
    return str(path.absolute())


def adapter_path(source: str) -> str:
    """The path of a LoRA adapter, which lies on the workers' disks. Raises Failure with status 2 for anything else."""
    try:
        remote = None if Path(source).expanduser().exists() else remote_source(source)
    except Failure:
        remote = source
    if remote is None:
        return local_path(source)
    raise Failure(
        f"{source} is no path, and a LoRA adapter must lie on the workers' disks: download it there, then give its"
        " path, such as /loras/style.gguf",
        Exit.USAGE,
    )


def name_for(source: str) -> str:
    """What a model is called whose source is all that is known: made of what a name may have.

    Raises Failure with status 2 where nothing is left of the file's name.
    """
    if source in FILELESS:
        return source
    if (engine := engine_of(source)) is not None:
        return engine
    server = server_source(source)
    remote = remote_source(source) if server is None else None
    given = server.model if server is not None else title_of(remote) if remote is not None else source
    whole = server is not None or isinstance(remote, HfSource)  # such names are ones with their slashes and dots
    if whole and re.fullmatch(NAME, given) and len(given) <= LONGEST_MODEL_NAME:
        return given
    source = given
    stem = re.sub(r"\.gguf$", "", Path(source).name, flags=re.IGNORECASE)
    if re.fullmatch(NAME, stem) and len(stem) <= LONGEST_MODEL_NAME:
        return stem
    plain = unicodedata.normalize("NFKD", stem).encode("ascii", "ignore").decode()
    made = _STRANGE.sub("-", plain).lstrip("._:/@-")[:LONGEST_MODEL_NAME].rstrip("-")
    if not made:
        raise Failure(f"no name can be made of {stem!r}: give the model one with --name NAME", Exit.USAGE)
    return made

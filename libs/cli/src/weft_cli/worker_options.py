"""What a worker is told: flags of the command line, over the environment, over a file. One table names them all."""

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from weft_client.failure import Exit, Failure
from weft_contracts.budget import parse_budget

VARIABLES: Mapping[str, str] = {
    "join": "WEFT_GATEWAY_URL",
    "token": "WEFT_JOIN_TOKEN",
    "name": "WEFT_NODE_NAME",
    "labels": "WEFT_LABELS",
    "advertise": "WEFT_ADVERTISE_HOST",
    "grpc-port": "WEFT_GRPC_PORT",
    "http-port": "WEFT_HTTP_PORT",
    "models-path": "WEFT_MODELS",
    "backends-path": "WEFT_BACKENDS",
    "devices": "WEFT_DEVICES",
    "vram-budget": "WEFT_VRAM_BUDGET",
    "simulate-gpus": "WEFT_SIMULATE_GPUS",
    "max-replicas-per-model": "WEFT_MAX_REPLICAS_PER_MODEL",
    "drain-timeout": "WEFT_DRAIN_TIMEOUT",
    "state": "WEFT_STATE",
}
"""The variable that a worker reads, by the option's name: `--name` on the command line, `name = …` in the file."""
_PORTS = ("grpc-port", "http-port")
_WHOLE = (*_PORTS, "max-replicas-per-model", "drain-timeout")


def settings(flags: Mapping[str, str | None], environ: Mapping[str, str], file: Path | None) -> dict[str, str]:
    """What was said, as environment variables, whoever said it. Raises Failure for what can't be meant.

    `WEFT_STATE` of the environment is not taken: it is the folder of a whole mesh.
    """
    said = {key: (value, f"{file}: {key}") for key, value in _file(file).items()} if file is not None else {}
    for key, variable in VARIABLES.items():
        if key != "state" and environ.get(variable, "").strip():
            said[key] = (environ[variable], variable)
    said |= {key: (value, f"--{key}") for key, value in flags.items() if value is not None}
    for key, (value, where) in said.items():
        _check(key, value, where)
    return {VARIABLES[key]: value for key, (value, _) in said.items()}


def _file(file: Path) -> dict[str, str]:
    """A file's settings as texts."""
    try:
        found = tomllib.loads(file.read_text())
    except OSError as error:
        raise Failure(f"--config {file}: it can't be read: {error.strerror}", Exit.USAGE) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Failure(f"--config {file}: it is no TOML: {error}", Exit.USAGE) from None
    said: dict[str, str] = {}
    for key, value in cast("dict[str, object]", found).items():
        if key not in VARIABLES:
            near = difflib.get_close_matches(key.replace("_", "-"), VARIABLES, n=1)
            right = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(VARIABLES)}"
            raise Failure(f"{file}: `{key}` is no setting of a worker; {right}", Exit.USAGE)
        said[key] = _text(key, value, f"{file}: {key}")
    return said


def _text(key: str, value: object, where: str) -> str:
    match value:
        case str():
            return value
        case bool():
            pass
        case int() if key in _WHOLE:
            return str(value)
        case list() if key in ("labels", "devices"):
            entries = cast("list[object]", value)
            if all(isinstance(each, str) for each in entries):
                return ",".join(cast("list[str]", entries))
        case dict() if key == "labels":
            labels = cast("dict[str, object]", value)
            if all(isinstance(each, str) for each in labels.values()):
                return ",".join(f"{name}={text}" for name, text in labels.items())
        case _:
            pass
    right = {"labels": 'a table such as {zone = "a"}', "devices": "a text or a list of texts"}.get(
        key, "a whole number" if key in _WHOLE else "a text"
    )
    raise Failure(f"{where}: want {right}, not {value!r}", Exit.USAGE)


def _check(key: str, value: str, where: str) -> None:
    """Raises Failure with what is wrong, where it stands, and what would be right."""
    if key in _WHOLE and not (value.isascii() and value.isdigit() and len(value) < 10):
        raise Failure(f"{where}: want a whole number, not {value!r}", Exit.USAGE)
    if key in _PORTS and int(value) > 65535:
        raise Failure(f"{where}: want a port, 1 to 65535, or 0 for any free one, not {value}", Exit.USAGE)
    if key == "labels" and not value.lstrip().startswith("{"):
        for each in filter(None, (part.strip() for part in value.split(","))):
            name, equals, _ = each.partition("=")
            if not name or not equals:
                raise Failure(f"{where}: {each!r} is no label: want KEY=VALUE, separated by commas", Exit.USAGE)
    if key == "vram-budget":
        try:
            parse_budget(value)
        except ValueError as error:
            raise Failure(f"{where}: {error}", Exit.USAGE) from None

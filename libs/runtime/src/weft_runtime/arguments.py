"""A service takes no arguments: `--help` tells its settings, anything else is refused with one sentence."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from weft_runtime.settings import BAD_SETTINGS, ProcessSettings

_BOUNDS = (("exclusiveMinimum", "above"), ("minimum", "from"), ("exclusiveMaximum", "below"), ("maximum", "up to"))


def refuse_arguments(program: str, settings: type[ProcessSettings], arguments: Sequence[str]) -> None:
    """Return where there are none. Raises SystemExit: 0 after the help, 2 for an argument that means nothing."""
    if not arguments:
        return
    if arguments[0] in ("-h", "--help"):
        print(_help(program, settings))
        raise SystemExit(0)
    print(f"{program} takes no arguments, so not {arguments[0]!r}: try --help", file=sys.stderr)
    raise SystemExit(BAD_SETTINGS)


def _help(program: str, settings: type[ProcessSettings]) -> str:
    properties: dict[str, dict[str, Any]] = settings.model_json_schema()["properties"]
    rows = [(f"WEFT_{name.upper()}", _default(about), _range(about)) for name, about in properties.items()]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    lines = [f"  {name:{widths[0]}}  {default:{widths[1]}}  {allowed}".rstrip() for name, default, allowed in rows]
    head = f"usage: python -m {program}\n\nIt takes no arguments; its settings are environment variables:"
    return "\n".join([head, *lines])


def _default(about: Mapping[str, Any]) -> str:
    default = about.get("default")
    return "none" if default is None else str(default).lower() if isinstance(default, bool) else str(default)


def _range(about: Mapping[str, Any]) -> str:
    if "enum" in about:
        return ", ".join(about["enum"])
    if about.get("type") == "boolean":
        return "true, false"
    return " ".join(f"{word} {about[key]:.15g}" for key, word in _BOUNDS if key in about)

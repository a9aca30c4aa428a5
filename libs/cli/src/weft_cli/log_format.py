"""Log lines for people: a JSON line becomes time, level, event and fields."""

import json
from typing import Any, cast

from weft_cli.render import printable

_SAID_ELSEWHERE = ("timestamp", "time", "logger", "level", "event", "part", "service", "instance", "exception")
_STYLES = {"debug": "2", "info": "", "warning": "33", "error": "31", "critical": "31"}


def readable(line: str, *, styled: bool) -> str:
    """One line of a log as a person reads it. What is no JSON object is shown as it is, made printable."""
    fields = _fields(line)
    if fields is None or not isinstance(fields.get("event"), str):
        return printable(line)
    level = str(fields.get("level", ""))
    time = str(fields.get("timestamp") or fields.get("time") or "")[11:19] or " " * 8
    said = "  ".join(f"{name}={_value(value)}" for name, value in fields.items() if name not in _SAID_ELSEWHERE)
    text = printable(f"{time} {level:<7} {fields['event']}" + (f"  {said}" if said else ""))
    for frame in _frames(fields.get("exception")):
        text += f"\n    {printable(frame)}"
    style = _STYLES.get(level, "")
    return f"\033[{style}m{text}\033[0m" if styled and style else text


def _fields(line: str) -> dict[str, Any] | None:
    if not line.startswith("{"):
        return None
    try:
        parsed: object = json.loads(line)
    except ValueError:
        return None
    return cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else None


def _value(value: object) -> str:
    return value if isinstance(value, str) and value and " " not in value else json.dumps(value, ensure_ascii=False)


def _frames(exception: object) -> list[str]:
    """Where an error was raised, innermost last, and the error."""
    found: list[str] = []
    for each in cast("list[dict[str, Any]]", exception) if isinstance(exception, list) else []:
        if isinstance(each, dict):  # pyright: ignore[reportUnnecessaryIsInstance] - it was read from a file
            for frame in each.get("frames", [])[-3:]:
                found.append(f"{frame.get('filename')}:{frame.get('lineno')} {frame.get('name')}")
            found.append(f"{each.get('exc_type')}: {each.get('exc_value')}")
    return found

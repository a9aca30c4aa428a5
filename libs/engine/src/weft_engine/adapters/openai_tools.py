"""Tools between Weft's form and an OpenAI server's: a constraint's schema tells the functions, and calls go back as
lines of `{"name": …, "arguments": {…}}`."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from weft_contracts.gen import session_pb2 as pb

from weft_engine.adapters.called_functions import Call, Unreadable

MAX_CALLS: Final = 128


def functions_of(constraint: pb.Constraint) -> list[dict[str, Any]] | None:
    """The functions whose calls the constraint's schema fits, as `tools` has them; None where it is no such schema."""
    schema = json.loads(constraint.json_schema)
    if not isinstance(schema, dict):
        return None
    whole = cast(dict[str, Any], schema)
    several: object = whole.get("anyOf")
    branches = cast(list[Any], several) if isinstance(several, list) else [whole]
    found: list[dict[str, Any]] = []
    for place, branch in enumerate(branches):
        at = "#/properties/arguments" if branch is whole else f"#/anyOf/{place}/properties/arguments"
        match branch:
            case {
                "type": "object",
                "properties": {"name": {"const": str(name)}, "arguments": parameters, **others},
            } if not others:
                function = {"name": name, "parameters": _moved_back(parameters, at)}
                found.append({"type": "function", "function": function})
            case _:
                return None
    return found


def _moved_back(schema: Any, at: str) -> Any:
    """References as they were before the parameters stood within the schema of a call."""
    match schema:
        case {"$ref": str(pointer), **others} if pointer.startswith(at):
            return {"$ref": f"#{pointer.removeprefix(at)}", **cast(Mapping[str, Any], others)}
        case dict():
            return {key: _moved_back(value, at) for key, value in cast(dict[str, Any], schema).items()}
        case list():
            return [_moved_back(value, at) for value in cast(list[Any], schema)]
        case _:
            return schema


class CallWriter:
    """Writes a server's calls as they come, each on a line of its own."""

    def __init__(self) -> None:
        self._count = 0
        self._index: int | None = None
        self._has_arguments = False

    @property
    def begun(self) -> bool:
        """A call was told."""
        return self._count > 0

    def feed(self, calls: Sequence[Call]) -> str:
        """What these add. Raises Unreadable for a call without a name."""
        made: list[str] = []
        for call in calls:
            name = call.function.name if call.function is not None else None
            arguments = (call.function.arguments if call.function is not None else None) or ""
            other = not self._count or (call.index != self._index if call.index is not None else bool(name))
            if other:
                made.append(self._next(name, call.index))
            if arguments:
                self._has_arguments = True
                made.append(arguments)
        return "".join(made)

    def end(self) -> str:
        """What closes the last call."""
        if not self._count:
            return ""
        return "}" if self._has_arguments else "{}}"

    def _next(self, name: str | None, index: int | None) -> str:
        if not name:
            raise Unreadable("it calls a tool without a name")
        if self._count >= MAX_CALLS:
            raise Unreadable(f"it calls more than {MAX_CALLS} tools in one answer")
        before = f"{self.end()}\n" if self._count else ""
        self._count += 1
        self._index, self._has_arguments = index, False
        return f'{before}{{"name": {json.dumps(name, ensure_ascii=False)}, "arguments": '

"""How ambiguous a schema is: how many readings (parses) of an answer it leaves open at once, and the bound of that.

llama.cpp follows all readings of what was said so far side by side and compares each with each. Where branches of a
union begin alike, their readings multiply with those of the unions inside them: a schema of 500 bytes made 10,000 and
held the engine, and all who share it, for 3.5 s a token.
"""

from typing import Any, Final

from weft_engine.json_schema import (
    LITERAL,
    UNIONS,
    Schema,
    SchemaRefused,
    constants_of,
    kinds_of,
    list_of,
    object_of,
    resolved,
)

MAX_READINGS: Final = 500
MAX_ROUNDS: Final = 12
"""Rounds until the counts of schemas that lead to themselves stand still. They do so soon, or never."""
MAX_ALIKE: Final = 32
"""Properties over which objects are compared; longer ones count as if nothing told them apart."""

Fields = list[tuple[str, Any, bool]]
"""An object's properties in order: name, schema, whether it is required."""


def check_ambiguity(whole: Any) -> None:
    """Refuse a schema that leaves too many readings open. It has become a grammar already. Raises SchemaRefused."""
    counts = _Counts(whole)
    for _ in range(MAX_ROUNDS):
        if not counts.count_again():
            return
    raise _too_many("#")


class _Counts:
    """Each schema's count in a document, as far as known: counted again from one another until they stand still.

    A schema that leads to itself through branches that begin alike has no end, and grows in each round.
    """

    def __init__(self, whole: Any) -> None:
        self._whole = whole
        self._known: dict[int, int] = {}
        self._fields: dict[int, Fields] = {}
        self._seen: set[int] = set()
        self._changed = False

    def count_again(self) -> bool:
        """Whether a count has grown."""
        self._seen.clear()
        self._changed = False
        self._of(self._whole, "#")
        return self._changed

    def _of(self, schema: Any, at: str) -> int:
        known = object_of(schema)
        if known is None:
            return 1
        place = id(known)
        if place not in self._seen:
            self._seen.add(place)
            count = self._counted(known, at)
            if count > MAX_READINGS:
                raise _too_many(at)
            if count != self._known.get(place, 1):
                self._known[place] = count
                self._changed = True
        return self._known.get(place, 1)

    def _counted(self, schema: Schema, at: str) -> int:
        if "$ref" in schema:
            return self._of(resolved(self._whole, schema["$ref"], at), schema["$ref"])
        for keyword in UNIONS:
            if keyword in schema:
                branches = list_of(schema[keyword]) or []
                inside = [self._of(branch, f"{at}/{keyword}/{i}") for i, branch in enumerate(branches)]
                return max(sum(inside), 1) if len(inside) < 2 else max(*inside, self._together(schema))
        if any(keyword in schema for keyword in LITERAL):
            return 1
        return max([self._of_kind(kind, schema, at) for kind in kinds_of(schema, at) or ()], default=1)

    def _of_kind(self, kind: str, schema: Schema, at: str) -> int:
        if kind == "object":
            fields = self._fields_of(schema)
            if not fields:
                return self._of(schema.get("additionalProperties"), f"{at}/additionalProperties")
            inside = [self._of(value, f"{at}/properties/{name}") for name, value, _ in fields]
            return max(*inside, _longest_choice(fields))
        if kind == "array":
            places = list_of(schema.get("prefixItems")) or [schema.get("items")]
            return max(self._of(place, f"{at}/items") for place in places)
        return 1

    def _together(self, union: Schema) -> int:
        """Readings of a union whose branches were counted."""
        branches = self._branches(union)
        count = 1
        for kind in ("object", "array", "string", "number", "boolean", "null"):
            alike = [branch for branch in branches if kind in _kinds(branch)]
            count = max(count, self._objects(alike) if kind == "object" else self._sum(alike))
        return count

    def _branches(self, schema: Any) -> list[Schema]:
        """The schemas that a union chooses from, behind references and unions in it; one as often as it is led to."""
        known = object_of(schema)
        if not known:
            return [{}]
        if "$ref" in known:
            return self._branches(resolved(self._whole, known["$ref"], "#"))
        for keyword in UNIONS:
            if keyword in known:
                found: list[Schema] = []
                for branch in list_of(known[keyword]) or ():
                    found += self._branches(branch)
                    if len(found) > MAX_READINGS * 8:
                        raise _too_many("#")
                return found
        return [known]

    def _sum(self, schemas: list[Schema]) -> int:
        return sum(self._known.get(id(schema), 1) for schema in schemas)

    def _objects(self, objects: list[Schema], place: int = 0) -> int:
        """Readings of objects that are alike up to their property of this place."""
        if len(objects) < 2:
            return self._sum(objects)
        fields = [self._fields_of(schema) for schema in objects]
        if place == MAX_ALIKE or any(place >= len(each) or not each[place][2] for each in fields):
            return self._sum(objects)  # what comes next is open, so nothing tells them apart
        count = 1
        by_name: dict[str, list[int]] = {}
        for i, each in enumerate(fields):
            by_name.setdefault(each[place][0], []).append(i)
        for members in by_name.values():
            values = [fields[i][place][1] for i in members]
            count = max(count, sum(self._known.get(id(value), 1) for value in values))
            for alike in _by_constant(members, [constants_of(value) for value in values]):
                count = max(count, self._objects([objects[i] for i in alike], place + 1))
        return count

    def _fields_of(self, schema: Schema) -> Fields:
        found = self._fields.get(id(schema))
        if found is None:
            required = set(list_of(schema.get("required")) or [])
            declared = object_of(schema.get("properties")) or {}
            found = self._fields[id(schema)] = [(name, value, name in required) for name, value in declared.items()]
        return found


def _by_constant(members: list[int], constants: list[list[Any]]) -> list[list[int]]:
    """The members that one value fits; all of them where one takes more than constants."""
    if not all(constants):
        return [members]
    by_value: dict[str, list[int]] = {}
    for member, values in zip(members, constants, strict=True):
        for value in {repr(value) for value in values}:
            by_value.setdefault(value, []).append(member)
    return [list(alike) for alike in {tuple(each) for each in by_value.values()}]


def _longest_choice(fields: Fields) -> int:
    """How many properties can come next: those that may be left out, one after another, and the one behind."""
    longest = run = 1
    for _, _, required in fields:
        run = 1 if required else run + 1
        longest = max(longest, run)
    return longest


def _kinds(schema: Schema) -> set[str]:
    """What a schema's values can be, integers being numbers. It is no reference and no union."""
    if "const" in schema or "enum" in schema:
        return {_kind_of(value) for value in constants_of(schema)}
    kinds = kinds_of(schema, "#")
    if kinds is None:
        return {"object", "array", "string", "number", "boolean", "null"}
    return {"number" if kind == "integer" else kind for kind in kinds}


def _kind_of(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case dict():
            return "object"
        case list():
            return "array"
        case _:
            return "number"


def _too_many(at: str) -> SchemaRefused:
    return SchemaRefused(
        f"the JSON schema at {at[:80]} has branches that begin alike, in more than {MAX_READINGS} ways; let each begin "
        "with a required property that has its own 'const', and declare fewer properties that may be left out"
    )

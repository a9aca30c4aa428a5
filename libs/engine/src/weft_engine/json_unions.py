"""Whether no value fits two branches of a `oneOf`: other types, or a required property with other constants."""

from typing import Any, Final

from weft_engine.json_schema import Schema, SchemaRefused, constants_of, list_of, object_of, resolved

MAX_STEPS: Final = 8
"""References that are followed to a branch."""
MAX_BRANCHES: Final = 256
"""Each is compared with each."""


def are_apart(whole: Any, branches: list[Any]) -> bool:
    """Whether no two of the branches share a value. Raises SchemaRefused."""
    if len(branches) > MAX_BRANCHES:
        raise SchemaRefused(
            f"the JSON schema has a 'oneOf' of {len(branches)} branches; at most {MAX_BRANCHES} are taken"
        )
    seen = [_behind_references(whole, branch) for branch in branches]
    return all(_differ(a, b) for i, a in enumerate(seen) for b in seen[i + 1 :])


def _behind_references(whole: Any, branch: Any) -> Schema:
    for _ in range(MAX_STEPS):
        known = object_of(branch)
        if known is None or not isinstance(known.get("$ref"), str):
            break
        branch = resolved(whole, known["$ref"], "#")
    return object_of(branch) or {}


def _differ(a: Schema, b: Schema) -> bool:
    one, other = a.get("type"), b.get("type")
    if isinstance(one, str) and isinstance(other, str) and one != other:
        return {one, other} != {"integer", "number"}
    if one != "object" or other != "object":
        return False
    ours, theirs = object_of(a.get("properties")) or {}, object_of(b.get("properties")) or {}
    for name in ours:
        if name not in theirs or not all(name in (list_of(schema.get("required")) or []) for schema in (a, b)):
            continue
        left, right = constants_of(ours.get(name)), constants_of(theirs.get(name))
        if left and right and not any(value in right for value in left):
            return True
    return False

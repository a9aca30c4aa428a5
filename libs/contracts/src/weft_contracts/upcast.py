"""Lifts facts of old versions to the one that the code knows. Pure; one step a version."""

from collections.abc import Callable, Mapping
from typing import Any

from weft_contracts.subjects import Kind

Body = dict[str, Any]
Lift = Callable[[Body], Body]

LIFTS: Mapping[tuple[Kind, str, int], Lift] = {}
"""From (kind, type, version) to the body of the next version. Empty: everything is version 1."""


def lift(kind: Kind, body: Body, lifts: Mapping[tuple[Kind, str, int], Lift] = LIFTS) -> Body:
    """The body in the newest version that a chain of lifts reaches."""
    while (step := lifts.get((kind, str(body.get("type")), int(body.get("v", 1))))) is not None:
        before = int(body.get("v", 1))
        body = step(body)
        body["v"] = before + 1
    return body

"""One line of a journal."""

import json
from typing import Any, cast


def object_of(line: str) -> dict[str, Any] | None:
    """The JSON object that a line holds; None for one that was cut, or holds something else."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return cast(dict[str, Any], found) if isinstance(found, dict) else None

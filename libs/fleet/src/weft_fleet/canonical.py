"""One digest for a folded state: equal states have equal digests in every process."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from typing import Any, cast

from pydantic import BaseModel


def digest_of(state: object) -> str:
    """64 hex digits over the state; the order of mappings and sets does not count."""
    text = json.dumps(_plain(state), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: object) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, BaseModel):
        return [type(value).__name__, value.model_dump(mode="json")]
    if is_dataclass(value):
        return {entry.name: _plain(getattr(value, entry.name)) for entry in fields(value) if entry.compare}
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value)
        return {str(key): _plain(item) for key, item in pairs.items()}
    if isinstance(value, AbstractSet):
        return sorted(str(item) for item in cast("AbstractSet[object]", value))
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast("Iterable[object]", value)]
    raise TypeError(f"no digest for {type(value).__name__}")

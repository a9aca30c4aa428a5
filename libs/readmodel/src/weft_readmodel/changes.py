"""What one transaction writes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlmodel import SQLModel

Table = type[SQLModel]


@dataclass(frozen=True, slots=True)
class Changes:
    """Rows to write and keys to take away, by table. A key is taken away before rows are written."""

    rows: Mapping[Table, Sequence[SQLModel]] = field(default_factory=dict[Table, Sequence[SQLModel]])
    gone: Mapping[Table, Sequence[str]] = field(default_factory=dict[Table, Sequence[str]])
    """By the table's key column, which must be text."""
    only: Mapping[Table, Sequence[str]] = field(default_factory=dict[Table, Sequence[str]])
    """Tables in which nothing but these keys may remain."""

"""The shape of tables: their DDL, and a digest that tells whether what stands in Postgres has it."""

import hashlib
from collections.abc import Sequence
from typing import Any, cast

from sqlalchemy import Table
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, CreateTable
from sqlmodel import SQLModel

_DIALECT = postgresql.dialect()


def table_of(model: type[SQLModel]) -> Table[Any]:
    """The table behind a model. Raises TypeError for a model that has none."""
    table: Any = getattr(model, "__table__", None)
    if not isinstance(table, Table):
        raise TypeError(f"{model.__name__} has no table: declare it with table=True")
    return cast("Table[Any]", table)


def statements(models: Sequence[type[SQLModel]]) -> list[str]:
    """What makes the tables and their indexes, in order."""
    found: list[str] = []
    for model in models:
        table = table_of(model)
        found.append(str(CreateTable(table).compile(dialect=_DIALECT)).strip())
        indexes = sorted(table.indexes, key=lambda index: str(index.name))
        found += [str(CreateIndex(index).compile(dialect=_DIALECT)) for index in indexes]
    return found


def shape_digest(models: Sequence[type[SQLModel]], fold_version: int) -> str:
    """16 hex digits over the tables and the version of the fold that fills them.

    Raise `fold_version` when the same columns are to be filled in another way.
    """
    text = "\n".join([str(fold_version), *statements(models)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]

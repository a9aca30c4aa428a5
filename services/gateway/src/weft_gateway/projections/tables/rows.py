"""The gateways' tables: what people page through. Dropped and folded again when their shape changes."""

from typing import Any

from sqlalchemy import BigInteger, Column
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

FOLD_VERSION = 8
"""Raise it when rows of the same columns are to be filled in another way."""


def _body() -> Any:
    return Field(sa_column=Column(JSONB, nullable=False))


class NodeRow(SQLModel, table=True):
    """One node, removed ones too."""

    __tablename__ = "nodes"  # pyright: ignore[reportAssignmentType]

    id: str = Field(primary_key=True)
    name: str
    state: str = Field(index=True)
    body: Any = _body()
    """As the API shows it."""


class ModelRow(SQLModel, table=True):
    """One model, deleted ones too."""

    __tablename__ = "models"  # pyright: ignore[reportAssignmentType]

    id: str = Field(primary_key=True)
    name: str = Field(index=True)
    state: str
    body: Any = _body()


class ReplicaRow(SQLModel, table=True):
    """One replica that is wanted, or one of the last few thousand that are over."""

    __tablename__ = "replicas"  # pyright: ignore[reportAssignmentType]

    id: str = Field(primary_key=True)
    model: str = Field(index=True)
    node: str | None = Field(default=None, index=True)
    state: str
    body: Any = _body()


class RequestRow(SQLModel, table=True):
    """One request for change."""

    __tablename__ = "requests"  # pyright: ignore[reportAssignmentType]

    id: str = Field(primary_key=True)
    number: int = Field(index=True, sa_type=BigInteger)
    """Log sequence of the request: pages go by it."""
    type: str
    state: str
    body: Any = _body()


TABLES: tuple[type[SQLModel], ...] = (NodeRow, ModelRow, ReplicaRow, RequestRow)

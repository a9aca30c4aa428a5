"""The checkpoint: how far a set of tables is folded, and from which stream, under which shape."""

from dataclasses import dataclass

from weft_readmodel.connecting import Connection
from weft_readmodel.errors import FenceLost

CREATE = """
create table if not exists weft_checkpoint (
    name text primary key,
    stream_identity text not null,
    stream_seq bigint not null,
    event_id text not null,
    shape text not null
)"""


@dataclass(frozen=True, slots=True)
class Position:
    """A place in one stream. Two positions of different identity have nothing to do with one another."""

    identity: str
    """What tells the stream from another of its name."""
    sequence: int
    """Of the last folded commit; 0: nothing is folded."""
    event_id: str = ""
    """Of that commit: a stream that was put back and went on differs here."""


START = Position("", 0)
"""Before anything was folded."""


async def load(connection: Connection, name: str) -> tuple[Position, str] | None:
    """The position and the shape's digest that stand under a name; None if nothing does."""
    row = await connection.fetchrow(
        "select stream_identity, stream_seq, event_id, shape from weft_checkpoint where name = $1", name
    )
    if row is None:
        return None
    return Position(row["stream_identity"], row["stream_seq"], row["event_id"]), row["shape"]


async def reset(connection: Connection, name: str, at: Position, shape: str) -> None:
    """Begin anew. Only in the transaction that drops the tables."""
    await connection.execute(
        "insert into weft_checkpoint values ($1, $2, $3, $4, $5) on conflict (name) do update set"
        " stream_identity = $2, stream_seq = $3, event_id = $4, shape = $5",
        *(name, at.identity, at.sequence, at.event_id, shape),
    )


async def move(connection: Connection, name: str, before: Position, after: Position) -> None:
    """Move on from exactly where we left it. Raises FenceLost if another process moved it first."""
    answer = await connection.execute(
        "update weft_checkpoint set stream_identity = $2, stream_seq = $3, event_id = $4"
        " where name = $1 and stream_seq = $5 and stream_identity = $6",
        *(name, after.identity, after.sequence, after.event_id, before.sequence, before.identity),
    )
    if answer != "UPDATE 1":
        raise FenceLost(f"the tables of {name} moved past {before.sequence} without us")

"""Every stream, bucket and store, declared once. Whoever applies it talks to the server; this is data."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from weft_contracts.ids import NodeId
from weft_contracts.subjects import worker_filters

Storage = Literal["file", "memory"]
DAY = 86_400


@dataclass(frozen=True, slots=True)
class Stream:
    """One JetStream stream. Sizes are bytes, times seconds; 0 is no limit."""

    name: str
    subjects: tuple[str, ...]
    storage: Storage
    refuse_when_full: bool = False
    deny_delete: bool = False
    allow_direct: bool = False
    allow_atomic: bool = False
    allow_schedules: bool = False
    last_per_subject: bool = False
    max_bytes: int = 0
    max_age: int = 0
    replicated: bool = True
    """Three copies where the cluster has three servers."""
    max_message_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Bucket:
    """A key-value bucket or an object store."""

    name: str
    storage: Storage
    max_bytes: int = 0
    erasable: bool = False
    """What is taken away is overwritten on disk: a mere deletion leaves it there until its file is rewritten."""


EVENTS = Stream(
    "EVENTS",
    ("weft.ev.>",),
    "file",
    refuse_when_full=True,
    deny_delete=True,
    allow_direct=True,
    allow_atomic=True,
    max_message_bytes=96 * 1024,
)
LEASES = Stream("LEASES", ("weft.lease.>",), "memory", last_per_subject=True, allow_direct=True)
SIGNALS = Stream(
    "SIGNALS",
    ("weft.sig.>",),
    "memory",
    last_per_subject=True,
    allow_direct=True,
    max_bytes=256 << 20,
    replicated=False,
)
USAGE = Stream("USAGE", ("weft.usage.>",), "file", max_age=400 * DAY)
TIMERS = Stream("TIMERS", ("weft.timer.>",), "file", allow_schedules=True, max_age=7 * DAY)
SNAPSHOT_CHUNK_BYTES = 256 * 1024
SNAPSHOTS = Stream(
    "SNAPSHOTS",
    ("weft.snapshot.>",),
    "file",
    last_per_subject=True,
    refuse_when_full=True,
    max_bytes=2 << 30,
    max_message_bytes=2 * SNAPSHOT_CHUNK_BYTES,
)
"""Each fold's snapshots, in pieces. No object store: there, what is replaced goes by a purge or a rollup, and who may
do either may do it to everybody's. Here a newer piece stands in for the older one, under its writer's own subjects."""

STREAMS: tuple[Stream, ...] = (EVENTS, LEASES, SIGNALS, USAGE, TIMERS, SNAPSHOTS)

UNREAD: Mapping[str, str] = {
    USAGE.name: "for settled usage by key and model, kept apart from the truth since it grows with traffic",
    TIMERS.name: "for scheduled messages, by which time enters the system as an event",
}
"""Streams that nothing of Weft reads yet, and what they are for. Servers have them, so that readers can come first."""
UNWRITTEN: frozenset[str] = frozenset((USAGE.name, TIMERS.name))
"""Those of them to which nothing writes yet, either."""
CREDENTIALS = Bucket("credentials", "file", 64 << 20)
PEOPLE = Bucket("people", "file", 64 << 20, erasable=True)
SECRETS = Bucket("secrets", "file", 256 << 20, erasable=True)
"""Sealed values alone; `weft_contracts.secrets` says what lies where."""
KEY_VALUES: tuple[Bucket, ...] = (CREDENTIALS, PEOPLE, SECRETS)
BLOBS = Bucket("blobs", "file")
OBJECT_STORES: tuple[Bucket, ...] = (BLOBS,)

MAX_CONSUMERS = 20_000
"""Of one stream; the server's own default is 1,000."""


@dataclass(frozen=True, slots=True)
class Durable:
    """A durable pull consumer of EVENTS."""

    name: str
    filters: tuple[str, ...]
    ack_wait: float = 30.0
    """Seconds until what was not acknowledged is delivered again."""
    ahead: int = 1_000
    """Messages that may be delivered and not acknowledged yet."""
    pulls: int = 0
    """Pulls that may wait at once; 0: as many as the server lets."""
    begin: int = 0
    """Sequence of the first message that it may read, also when it is rewound; 0: the log's first."""
    kept_s: float = 0
    """Seconds without a pull after which the server forgets it; 0: never."""


def worker_durable(node: NodeId) -> Durable:
    """How a worker reads its part of the log. The registry makes it; workers make no consumers."""
    return Durable(f"node-{node}", worker_filters(node))


OBSERVERS = 1_000
"""Of one mesh: each place costs the log's server room, and work for each commit."""
OBSERVER_AHEAD = 64
KEPT_S = 30 * DAY
"""For so long a place is kept that nobody reads from, unless told otherwise."""


def observer_durable(name: str, begin: int = 1, kept_s: float = KEPT_S) -> Durable:
    """An observer's place in the log. Who has the mesh's keys makes it; observers make no consumers.

    What is not acknowledged waits for the observer to ask for it again, not for a time: so nothing overtakes.
    """
    return Durable(
        f"observer-{name}", ("weft.ev.>",), ack_wait=3_600.0, ahead=OBSERVER_AHEAD, pulls=4, begin=begin, kept_s=kept_s
    )

"""The event log: append, replay and projection on JetStream."""

from weft_eventlog.errors import Conflict, ForeignDuplicate, LogFull, LogUnavailable
from weft_eventlog.last_values import LastValue, LastValues
from weft_eventlog.leases import Leases
from weft_eventlog.log import EventLog, new_event_id
from weft_eventlog.log_size import LogSize
from weft_eventlog.projection import Projection
from weft_eventlog.snapshots import Snapshots
from weft_eventlog.topology import (
    apply_durable,
    apply_stream,
    apply_topology,
    drop_durable,
    follow_disk,
    follow_size,
    last_sequence,
    leaderless,
    make_anew,
)
from weft_eventlog.worker_log import WorkerLog

__all__ = [
    "Conflict",
    "EventLog",
    "ForeignDuplicate",
    "LastValue",
    "LastValues",
    "Leases",
    "LogFull",
    "LogSize",
    "LogUnavailable",
    "Projection",
    "Snapshots",
    "WorkerLog",
    "apply_durable",
    "apply_stream",
    "apply_topology",
    "drop_durable",
    "follow_disk",
    "follow_size",
    "last_sequence",
    "leaderless",
    "make_anew",
    "new_event_id",
]

"""Who may publish and subscribe to what, derived from the catalogue and the topology."""

from dataclasses import dataclass

from weft_contracts.catalogue import CATALOGUE, Writer, written_by
from weft_contracts.ids import NodeId
from weft_contracts.subjects import gateway_signal, ids_of, node_lease, service_lease
from weft_contracts.topology import STREAMS, observer_durable, worker_durable

WORKER_PAYLOAD_BYTES = 96 * 1024
"""A worker's message above this cuts its connection."""


@dataclass(frozen=True, slots=True)
class Permissions:
    """Allow lists; what is not in them is denied."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]
    inbox: str
    """The prefix of this party's own inboxes."""
    payload_bytes: int = -1
    """-1: the server's limit."""


@dataclass(frozen=True, slots=True)
class SharedSubject:
    """A subject that the account MESH exports and another account imports."""

    subject: str
    streamed: bool = False
    """Whether one request may get several answers."""


WORKER_IMPORTS: tuple[SharedSubject, ...] = (
    SharedSubject("weft.ev.run.>"),
    SharedSubject("weft.ev.machine.>"),
    SharedSubject("weft.lease.node.*"),
    SharedSubject("weft.sig.node.>"),
    SharedSubject("$JS.API.CONSUMER.MSG.NEXT.EVENTS.*", streamed=True),
    SharedSubject("$JS.API.CONSUMER.RESET.EVENTS.*"),
    SharedSubject("$JS.ACK.EVENTS.>"),
)
"""All that the account WORKERS can reach; each worker's token narrows it to itself."""

OBSERVER_IMPORTS: tuple[SharedSubject, ...] = (
    SharedSubject("$JS.API.CONSUMER.MSG.NEXT.EVENTS.*", streamed=True),
    SharedSubject("$JS.API.CONSUMER.RESET.EVENTS.*"),
    SharedSubject("$JS.ACK.EVENTS.>"),
)
"""All that the account OBSERVERS can reach; each observer's token narrows it to its own place in the log.

Nothing is heard there on a subject that others could know: JetStream answers to whatever subject a request names,
within the account that asks, so an observer could have its answers sent into another's ears.
"""
OBSERVER_PAYLOAD_BYTES = 4 * 1024
"""An observer's message above this cuts its connection: it pulls and acknowledges."""

_READ_EVENTS = (
    "$JS.API.INFO",
    "$JS.API.STREAM.INFO.*",
    "$JS.API.STREAM.NAMES",
    "$JS.API.STREAM.MSG.GET.EVENTS",
    "$JS.API.STREAM.MSG.GET.LEASES",
    "$JS.API.STREAM.MSG.GET.SNAPSHOTS",
    "$JS.API.DIRECT.GET.EVENTS",
    "$JS.API.DIRECT.GET.EVENTS.>",
    "$JS.API.DIRECT.GET.LEASES",
    "$JS.API.DIRECT.GET.LEASES.>",
    "$JS.API.DIRECT.GET.SIGNALS",
    "$JS.API.CONSUMER.CREATE.EVENTS",
    "$JS.API.CONSUMER.CREATE.EVENTS.>",
    "$JS.API.CONSUMER.CREATE.LEASES",
    "$JS.API.CONSUMER.CREATE.LEASES.>",
    "$JS.API.CONSUMER.CREATE.TIMERS",
    "$JS.API.CONSUMER.CREATE.TIMERS.>",
    "$JS.API.CONSUMER.INFO.>",
    "$JS.API.CONSUMER.MSG.NEXT.TIMERS.>",
    "$JS.ACK.>",
    "$JS.FC.>",
)
_APPLY_TOPOLOGY = ("$JS.API.STREAM.CREATE.*", "$JS.API.STREAM.UPDATE.*")


def _reads_store(bucket: str) -> tuple[str, ...]:
    """What reading an object store takes."""
    stream = f"OBJ_{bucket}"
    return (
        f"$JS.API.DIRECT.GET.{stream}.>",
        f"$JS.API.STREAM.MSG.GET.{stream}",
        f"$JS.API.CONSUMER.CREATE.{stream}",
        f"$JS.API.CONSUMER.CREATE.{stream}.>",
        f"$JS.API.CONSUMER.INFO.{stream}.>",
        f"$JS.API.CONSUMER.DELETE.{stream}.>",
    )


def _writes_store(bucket: str) -> tuple[str, ...]:
    """What putting things into an object store takes besides."""
    return (f"$O.{bucket}.>", f"$JS.API.STREAM.PURGE.OBJ_{bucket}")


def _bucket(bucket: str) -> tuple[str, ...]:
    """What reading and writing a key-value bucket takes."""
    stream = f"KV_{bucket}"
    return (f"$KV.{bucket}.>", f"$JS.API.DIRECT.GET.{stream}.>", f"$JS.API.STREAM.MSG.GET.{stream}")


_OWN: dict[Writer, tuple[str, ...]] = {
    "registry": (
        *_bucket("credentials"),
        "$KV.secrets.key",
        "$KV.secrets.node.>",
        "$JS.API.DIRECT.GET.KV_secrets.$KV.secrets.>",
        "$JS.API.STREAM.MSG.DELETE.KV_secrets",
        "$JS.API.CONSUMER.DURABLE.CREATE.EVENTS.>",
        "$JS.API.CONSUMER.DELETE.EVENTS.*",
        # Made anew where a cluster has lost what it knew of them: they are memory, and no truth.
        *(f"$JS.API.STREAM.DELETE.{each.name}" for each in STREAMS if each.storage == "memory"),
    ),
    "metadata-cache": (*_reads_store("blobs"), *_writes_store("blobs")),
    "gateway": (
        "$KV.people.>",
        "$JS.API.DIRECT.GET.KV_people.>",
        "$JS.API.STREAM.MSG.DELETE.KV_people",
        "$JS.API.DIRECT.GET.KV_credentials.>",
        "$JS.API.STREAM.MSG.GET.KV_credentials",
        "$KV.secrets.sealed.*",
        "$JS.API.DIRECT.GET.KV_secrets.$KV.secrets.key",
        "$JS.API.DIRECT.GET.KV_secrets.$KV.secrets.node.>",
        *_reads_store("blobs"),
        "weft.usage.>",
        gateway_signal("*", "demand"),
    ),
}


def _facts(name: Writer) -> tuple[str, ...]:
    """The subjects of the facts that a service writes. One filter stands for a kind of which it writes every fact: a
    token is shown in one line of 4 kB at most, and gateways write all requests there are."""
    written = written_by(name)
    found: dict[str, None] = {}
    for entry in written:
        whole = all(each in written for each in CATALOGUE if each.kind == entry.kind)
        ids = ".".join("*" for _ in ids_of(entry.kind))
        found[f"weft.ev.{entry.kind}.{ids}.{'*' if whole else entry.type}"] = None
    return tuple(found)


def service(name: Writer) -> Permissions:
    """What one of our services may do inside the account MESH."""
    inbox = f"_INBOX_{name}"
    return Permissions(
        publish=(
            *_facts(name),
            service_lease(name),
            service_lease(f"{name}.*"),
            f"weft.timer.{name}.>",
            f"weft.sig.service.{name}.>",
            f"weft.snapshot.{name}.>",
            *_READ_EVENTS,
            *_APPLY_TOPOLOGY,
            *_OWN.get(name, ()),
        ),
        subscribe=(f"{inbox}.>", "weft.ev.>", "weft.lease.>", "weft.sig.>", f"weft.timer.{name}.>"),
        inbox=inbox,
    )


def worker(node: NodeId) -> Permissions:
    """What one worker may do inside the account WORKERS: speak for itself, read its own part."""
    durable = worker_durable(node).name
    inbox = f"_INBOX_{node}"
    return Permissions(
        publish=(
            *(f"weft.ev.machine.{node}.{e.type}" for e in written_by("worker") if e.kind == "machine"),
            *(f"weft.ev.run.{node}.*.{e.type}" for e in written_by("worker") if e.kind == "run"),
            node_lease(node),
            f"weft.sig.node.{node}.>",
            *_reads_durable(durable),
        ),
        subscribe=(f"{inbox}.>",),
        inbox=inbox,
        payload_bytes=WORKER_PAYLOAD_BYTES,
    )


def observer(name: str) -> Permissions:
    """What an outside observer may do inside the account OBSERVERS: read the log from its own place."""
    durable = observer_durable(name).name
    inbox = f"_INBOX_{name}"
    return Permissions(
        publish=_reads_durable(durable), subscribe=(f"{inbox}.>",), inbox=inbox, payload_bytes=OBSERVER_PAYLOAD_BYTES
    )


def observer_maker(name: str) -> Permissions:
    """What who adds or removes an observer may do inside the account MESH: make and delete that one's place."""
    durable = observer_durable(name).name
    inbox = f"_INBOX_observer-maker-{name}"
    return Permissions(
        publish=(
            "$JS.API.STREAM.INFO.EVENTS",
            f"$JS.API.CONSUMER.DURABLE.CREATE.EVENTS.{durable}",
            f"$JS.API.CONSUMER.DELETE.EVENTS.{durable}",
        ),
        subscribe=(f"{inbox}.>",),
        inbox=inbox,
    )


def _reads_durable(durable: str) -> tuple[str, ...]:
    """What reading a durable of EVENTS from another account takes."""
    return (
        f"$JS.API.CONSUMER.MSG.NEXT.EVENTS.{durable}",
        f"$JS.API.CONSUMER.RESET.EVENTS.{durable}",
        f"$JS.ACK.EVENTS.{durable}.>",
    )

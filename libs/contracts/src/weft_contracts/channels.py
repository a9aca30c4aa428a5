"""Where messages pass, for a document about them: every fact of the catalogue, the leases and the signals.

Streams to which nothing writes yet have none (`topology.UNWRITTEN`).
"""

from dataclasses import dataclass

from pydantic import BaseModel

from weft_contracts.catalogue import CATALOGUE, SERVICES, Entry, Writer
from weft_contracts.signals import GatewayDemand, Lease, NodeLoad, NodeProgress
from weft_contracts.subjects import EVENTS, ids_of


@dataclass(frozen=True, slots=True)
class Channel:
    """One kind of message: where it passes, who writes it, what it holds."""

    name: str
    address: str
    """Its subject, with the ids in braces."""
    says: str
    writers: tuple[Writer, ...]
    payload: type[BaseModel] | None
    """None: the subject says all."""
    entry: Entry | None = None
    """Of a fact: its place in the catalogue. Its message is a list that begins with such a fact."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names in braces."""
        return tuple(token[1:-1] for token in self.address.split(".") if token.startswith("{"))

    @property
    def pattern(self) -> str:
        """The filter that covers its subjects."""
        return ".".join("*" if token.startswith("{") else token for token in self.address.split("."))


def overlap(one: str, other: str) -> bool:
    """Whether some subject fits both of two filters."""
    left, right = one.split("."), other.split(".")
    for a, b in zip(left, right, strict=False):
        if ">" in (a, b):
            return True
        if a != b and "*" not in (a, b):
            return False
    return len(left) == len(right)


def _of_fact(entry: Entry) -> Channel:
    ids = ".".join(f"{{{name}}}" for name in ids_of(entry.kind))
    says = " ".join((entry.fact.__doc__ or "").split())
    address = f"{EVENTS}.{entry.kind}.{ids}.{entry.type}"
    return Channel(f"{entry.kind}.{entry.type}", address, says, entry.writers, entry.fact, entry)


CHANNELS: tuple[Channel, ...] = (
    *(_of_fact(entry) for entry in CATALOGUE),
    Channel("lease.node", "weft.lease.node.{node}", "A node's sign of life, every 2 s.", ("worker",), Lease),
    Channel(
        "lease.service",
        "weft.lease.service.{service}",
        "The sign of life of the instance of a service that decides, every 2 s.",
        SERVICES,
        Lease,
    ),
    Channel(
        "lease.echo",
        "weft.lease.service.registry.{instance}",
        "A registry's beat to itself, every second: silence counts only while it hears this.",
        ("registry",),
        None,
    ),
    Channel(
        "signal.node.load",
        "weft.sig.node.{node}.load",
        "The load of every engine of a node: when it changed, at most every 2 s.",
        ("worker",),
        NodeLoad,
    ),
    Channel(
        "signal.node.progress",
        "weft.sig.node.{node}.progress",
        "What a node installs and loads, and the memory that its replicas hold: when it changed, at most every second, "
        "and again every 10 s.",
        ("worker",),
        NodeProgress,
    ),
    Channel(
        "signal.gateway.demand",
        "weft.sig.gateway.{instance}.demand",
        "What runs and waits at a gateway, by model, every second; a last one as it stops.",
        ("gateway",),
        GatewayDemand,
    ),
)


def heard_through(*filters: str) -> tuple[Channel, ...]:
    """The channels whose messages may come through some of these filters."""
    return tuple(each for each in CHANNELS if any(overlap(filter, each.pattern) for filter in filters))


def sent_by(writer: Writer) -> tuple[Channel, ...]:
    """The channels that one party writes to."""
    return tuple(each for each in CHANNELS if writer in each.writers)

"""The end of an upgrade: facts may be written in their newest versions, since all who live read them."""

from collections import Counter
from dataclasses import dataclass

from weft_contracts.commit import Commit, Decision, Guard
from weft_contracts.facts.mesh import FormatRaised
from weft_contracts.formats import FORMATS, READS, lacking
from weft_contracts.subjects import MESH
from weft_fleet import NodeView, workers_behind
from weft_requests import PendingRequest

from weft_registry.domain.state import RegistryState

WAIT_S = 10.0
"""For the servers to say who is connected."""
_NAMED = 8


@dataclass(frozen=True, slots=True)
class ServicesHeard:
    """The connected services, standbys among them, as the NATS servers named them at one moment."""

    position: int = -1
    """What was folded when they were asked: of a request behind it this says nothing."""
    reading: tuple[tuple[str, int], ...] = ()
    """Of each: its service, and how many formats it reads (`formats.FORMATS`)."""
    fault: str | None = None
    """Why it can't be known who is there."""
    unheard: tuple[str, ...] = ()
    """NATS servers that didn't say who is connected to them."""
    living: tuple[str, ...] = ()
    """The services whose lease was renewed just before."""


NOT_ASKED = ServicesHeard()


def finish(state: RegistryState, pending: PendingRequest, heard: ServicesHeard, now: float) -> Decision | None:
    """Raise all formats, or say who can't read them; None while the servers have not said who is there."""
    if heard.position < pending.sequence:
        if now - pending.at < WAIT_S:
            return None
        return pending.rejected(503, "the NATS servers don't say which services are connected: try again")
    if heard.fault is not None:
        return pending.rejected(503, heard.fault)
    if hidden := _hidden(heard):
        return pending.rejected(503, hidden)
    behind = [*_services(heard), *_workers(state)]
    if behind:
        named, more = "; ".join(behind[:_NAMED]), f"; and {len(behind) - _NAMED} more" if len(behind) > _NAMED else ""
        return pending.rejected(409, f"not all of the mesh reads what would be written: {named}{more}")
    facts = unraised(state)
    raised = " ".join(f"{fact.fact}={fact.version}" for fact in facts)
    if not facts:
        return pending.fulfilled("every format is raised already", raised=raised)
    commit = Commit(MESH, facts, Guard(MESH, state.mesh_sequence), pending.cause)
    return pending.fulfilled(f"facts may be written anew: {raised}", commit, raised=raised)


def unraised(state: RegistryState) -> tuple[FormatRaised, ...]:
    """What lacks until all that this registry reads may be written."""
    return tuple(FormatRaised(fact=fact, version=READS[fact]) for fact in lacking(state.fleet.formats))


def _hidden(heard: ServicesHeard) -> str | None:
    """Who may be connected and was not heard, in one sentence."""
    if heard.unheard:
        servers = ", ".join(heard.unheard[:_NAMED])
        return (
            f"not every NATS server says who is connected to it; these don't: {servers}. "
            "A service there may be of an earlier version: start them, or take them out of the cluster, and try again"
        )
    lost = sorted(set(heard.living) - {service for service, _ in heard.reading})
    if lost:
        return f"no NATS server tells of the connection of {', '.join(lost)}, which lives by its lease: try again"
    return None


def _services(heard: ServicesHeard) -> list[str]:
    """Those of an earlier version that are connected, one sentence a service."""
    old = Counter(service for service, reads in heard.reading if reads < FORMATS)
    return [
        f"{count} {service} of an earlier version {'is' if count == 1 else 'are'} connected: upgrade or stop it"
        for service, count in sorted(old.items())
    ]


def _workers(state: RegistryState) -> list[str]:
    """The nodes that would be assigned what they can't read, one sentence a node. Those that are away may return."""
    return [_worker(node) for node in workers_behind(state.fleet.nodes.values())]


def _worker(node: NodeView) -> str:
    says = "has not said what it reads" if node.hardware is None else "is of an earlier version"
    away = " and is away" if node.gone else ""
    return f"the worker of {node.name} {says}{away}: upgrade it, or remove the node"

"""What the agent keeps of one engine host, beside what the rules see of it."""

from dataclasses import dataclass

from weft_contracts.signals import ReplicaLoad

from weft_worker_agent.domain.hosts import Host
from weft_worker_agent.domain.loading import Progress
from weft_worker_agent.domain.stall import Pulse
from weft_worker_agent.outbound.files.metadata import Offer
from weft_worker_agent.outbound.processes.host_watch import HostWatch
from weft_worker_agent.outbound.processes.launch import LaunchIdentity, Status


@dataclass(slots=True)
class HostEntry:
    """One host: what the rules see, its process, its stream, its metadata files."""

    host: Host
    identity: LaunchIdentity
    supervised: bool = False
    """Whether the supervisor knows it: then it can be signalled and reaped there."""
    pid: int | None = None
    progress: Progress | None = None
    watch: HostWatch | None = None
    status: Status = Status()  # noqa: RUF009 - frozen
    port: int = 0
    """Set for it to listen on; 0: it chooses."""
    offers: tuple[Offer, ...] | None = None
    """None: not looked for yet."""
    pulse: Pulse | None = None
    load: ReplicaLoad | None = None


def target_of(address: str, port: int) -> str:
    """Where the agent itself reaches an engine: one that listens everywhere, by loopback."""
    here = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address, address)
    return f"[{here}]:{port}" if ":" in here else f"{here}:{port}"

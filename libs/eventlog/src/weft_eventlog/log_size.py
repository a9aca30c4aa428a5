"""How large the log is, how large it may become, and how many of its copies are up to date."""

from dataclasses import dataclass

from nats.js.client import JetStreamContext
from weft_contracts.topology import EVENTS

from weft_eventlog.errors import unavailable


@dataclass(frozen=True, slots=True)
class LogSize:
    """As the server says. Sizes are bytes; a limit of 0 is none."""

    last_sequence: int
    bytes: int
    limit: int
    """At which the log takes nothing more."""
    copies: int
    """That there should be: servers that keep one."""
    current: int
    """Of them those that are up to date, the leader's own among them."""
    stored: int
    """On disk, of all streams of the mesh together."""
    storage_limit: int


async def log_size(js: JetStreamContext) -> LogSize:
    """Two questions to the server. Raises LogUnavailable."""
    with unavailable("the log can't be asked for its size"):
        info = await js.stream_info(EVENTS.name)
        account = await js.account_info()
    followers = (info.cluster.replicas or []) if info.cluster is not None else []
    return LogSize(
        last_sequence=int(info.state.last_seq),
        bytes=int(info.state.bytes),
        limit=max(0, info.config.max_bytes or 0),
        copies=info.config.num_replicas or 1,
        current=1 + sum(bool(each.current) and not each.offline for each in followers),
        stored=int(account.storage),
        storage_limit=max(0, account.limits.max_storage or 0),
    )

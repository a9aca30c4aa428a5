"""The gateway's door: what every request shows of who asks is held against the folded keys, hot route or not."""

import time
from collections.abc import Callable, Iterable

from weft_contracts.facts.values import Scope

from weft_gateway.domain.access import Policy, enter, shown, starting, still
from weft_gateway.domain.caller import NOBODY, Caller
from weft_gateway.projections.keys import Keys


class Door:
    """One for all of a gateway's connections. `ready`: the log is folded, so all keys are known."""

    def __init__(
        self, policy: Policy, keys: Keys, ready: Callable[[], bool], now: Callable[[], float] = time.time
    ) -> None:
        self.policy: Policy = policy
        self.ready = ready
        self._keys = keys.by_hash
        self._now = now

    def enter(self, headers: Iterable[tuple[bytes, bytes]], peer: str | None, needed: Scope) -> Caller:
        """Let a caller in. Raises Refused; 503 where only the log could tell and it is not folded yet."""
        seen = shown(headers, peer)
        if seen.authorization is not None and not self.ready():
            raise starting()
        return enter(seen, needed, self.policy, self._keys, self._now())

    def still(self, caller: Caller) -> None:
        """Look again before something begins that waited, for its body or its turn. Raises Refused, 401."""
        if caller is not NOBODY:
            still(caller, self._keys, self._now())

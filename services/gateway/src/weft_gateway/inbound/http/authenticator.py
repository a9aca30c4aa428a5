"""Authentication: what each request tells of its caller is held against the folded API keys, on every route."""

import time
from collections.abc import Callable, Sequence

from weft_contracts.facts.values import Scope

from weft_gateway.domain.access import (
    AuthContext,
    Policy,
    auth_context,
    authenticate,
    check_host,
    check_local,
    recheck,
    starting,
)
from weft_gateway.domain.caller import NOBODY, Caller
from weft_gateway.domain.client_address import Network, address_of
from weft_gateway.domain.cors import Cors, Headers
from weft_gateway.domain.rate_limiter import Limited, RateLimiter
from weft_gateway.domain.refused import Refused
from weft_gateway.projections.keys import Keys


class Authenticator:
    """One for all of a gateway's connections. `ready`: the log is folded, so all keys are known."""

    def __init__(
        self,
        policy: Policy,
        keys: Keys,
        ready: Callable[[], bool],
        now: Callable[[], float] = time.time,
        *,
        first_key_known: Callable[[], bool] = lambda: True,
        cors: Cors | None = None,
        trusted_proxies: Sequence[Network] = (),
    ) -> None:
        """`first_key_known`: whether the key that this gateway was told of at its start is among `keys`; until then
        nobody hears that a key is no good. `cors`: which pages of other origins may call; None: none.
        `trusted_proxies`: whose word for the address in front of them counts, for the rate limits and nothing else."""
        self.policy: Policy = policy
        self.ready = ready
        self.cors = cors
        self._first_key_known = first_key_known
        self._trusted_proxies = tuple(trusted_proxies)
        self._rate_limiter = RateLimiter()
        self._keys = keys.by_hash
        self._now = now

    def read_context(self, headers: Headers, peer: str | None, path: str, *, http10: bool) -> AuthContext:
        """What a request tells of its caller. Raises Refused, 400."""
        context = auth_context(headers, peer)
        check_host(context, http10=http10)
        if self.cors is not None:
            context.origin_allowed = self.cors.allows(path, context.origin)
        return context

    def authenticate(self, context: AuthContext, headers: Headers, required: Scope) -> Caller:
        """Let a caller in. Raises Refused; 503 where only the log could tell and it is not folded yet."""
        if context.authorization is not None and not self.ready():
            raise starting()
        try:
            return authenticate(context, required, self.policy, self._keys, self._now())
        except Refused as refused:
            if refused.status == 401 and context.authorization is not None and not self._first_key_known():
                raise starting("its first key is not in the event log yet") from None
            if refused.status == 401:
                self.count_attempt("key", headers, context.peer, refused.sentence)
            raise

    def is_rate_limited(self, context: AuthContext) -> bool:
        """Whether what needs no key is counted for this caller: not where this machine itself needs none."""
        if self.policy != "local":
            return True
        try:
            check_local(context)
        except Refused:
            return True
        return False

    def count_attempt(self, what: Limited, headers: Headers, peer: str | None, sentence: str = "") -> None:
        """Count what is asked without a good key, by address. Raises Refused, 429, where it is too much."""
        forwarded = [v.decode("latin-1") for name, v in headers if name == b"x-forwarded-for"]
        address = address_of(peer, forwarded, self._trusted_proxies)
        self._rate_limiter.count(what, address, time.monotonic(), sentence)

    def recheck(self, caller: Caller) -> None:
        """Check a caller's key again before something begins that waited, for its body or for its turn on the
        connection. Raises Refused, 401."""
        if caller is not NOBODY:
            recheck(caller, self._keys, self._now())

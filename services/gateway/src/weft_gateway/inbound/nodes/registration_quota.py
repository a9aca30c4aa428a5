"""For how many registrations there is room, by token and in all. Who is too many hears so: nothing is appended."""

import contextlib
import math
from collections import Counter
from collections.abc import Generator

from weft_contracts.ids import NodeId, TokenId, node_id_of
from weft_fleet import JoinLimits, Registrations, TooMany
from weft_fleet.registrations import Pace

from weft_gateway.domain.refused import Refused
from weft_gateway.domain.registration_token import TokenView

_CROWDED_S = 30.0
"""When to come again where the registry says that there are too many: another gateway took the last place."""


class RegistrationQuota:
    """What the log says of registrations, and those that this gateway is about to append."""

    def __init__(self, registrations: Registrations, limits: JoinLimits) -> None:
        self._registrations = registrations
        self._limits = limits
        self._pace = Pace()
        """Of what was let in here: what is appended is folded only a moment later."""
        self._coming: Counter[tuple[TokenId, NodeId]] = Counter()

    @contextlib.contextmanager
    def entered(self, token: TokenId, public_key: str, view: TokenView, now: float) -> Generator[None]:
        """Within it, the registration counts. `now`: seconds since the epoch. Raises Refused, 429, with when to come
        again; nodes that are approved already are not counted."""
        known = self._registrations
        if not known.counts(public_key):
            yield
            return
        most_waiting, limits = view.most_waiting, self._limits
        over = known.pace.full(token, limits, most_waiting, now) or self._pace.full(token, limits, most_waiting, now)
        node = _node_of(public_key)
        if over is None and not view.approves and node not in known.waiting:
            # What was appended and folded meanwhile waits already, though its answer is still on its way.
            coming = [of for of, id in self._coming if id != node and id not in known.waiting]
            over = known.crowded(token, limits, most_waiting, more=coming.count(token), more_in_all=len(coming))
        if over is not None:
            raise _refused(over)
        self._pace.note(token, now)
        self._coming[token, node] += 1
        try:
            yield
        except Refused as refused:
            if refused.status == 429:
                refused.headers.setdefault("retry-after", str(math.ceil(_CROWDED_S)))
            raise
        finally:
            self._coming[token, node] -= 1
            if not self._coming[token, node]:
                del self._coming[token, node]


def _node_of(public_key: str) -> NodeId:
    try:
        return node_id_of(public_key)
    except ValueError:
        return NodeId(public_key)  # the registry turns it away


def _refused(over: TooMany) -> Refused:
    again = str(max(1, math.ceil(over.again_s)))
    sentence = f"{over.why[0].upper()}{over.why[1:]}; try again in {again} s."
    return Refused(429, sentence, code="too_many", headers={"retry-after": again})

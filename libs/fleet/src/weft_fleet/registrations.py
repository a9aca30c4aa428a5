"""Who asked to join within the minute, and who waits for approval: what registrations are limited by, by token and in
all. Shared by the gateways, which take registrations, and the registry, which decides about
them.
"""

from dataclasses import dataclass, field

from weft_contracts.commit import Recorded
from weft_contracts.facts.node import Approved, Expired, Joined, Rejected, Removed
from weft_contracts.facts.request import JoinRequested
from weft_contracts.ids import NodeId, TokenId, node_id_of

MINUTE_S = 60.0
FULL_S = 30.0
"""When to ask again where too many wait for approval: nobody knows when somebody looks at them."""


@dataclass(frozen=True, slots=True)
class JoinLimits:
    """How many machines may ask to join. Each number bounds those that wait at once, and those that come within one
    minute of the clock; nodes that are approved don't count."""

    in_all: int = 2000
    per_token: int = 64
    """Machines of one token, unless the token says another number."""
    waits_s: float = 86_400.0
    """How long a node waits for approval, in seconds; then it is forgotten."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A node that waits for approval."""

    token: TokenId
    since: float
    """Seconds since the epoch, by the log."""


@dataclass(frozen=True, slots=True)
class Minute:
    """One minute of the log's clock, and how many registrations it has seen."""

    number: int = 0
    """Minutes since the epoch."""
    count: int = 0

    def after(self, at: float) -> "Minute":
        """The minute with one registration more, `at` seconds since the epoch."""
        number = int(at // MINUTE_S)
        return Minute(number, self.count + 1 if number == self.number else 1)

    def seen(self, now: float) -> int:
        """How many there were in the minute that it is now."""
        return self.count if int(now // MINUTE_S) == self.number else 0


@dataclass(frozen=True, slots=True)
class TooMany:
    """A registration that is not taken now."""

    why: str
    again_s: float
    """When to try again, in seconds."""


@dataclass(slots=True)
class Pace:
    """How many registrations there were within the minute."""

    by_token: dict[TokenId, Minute] = field(default_factory=dict[TokenId, Minute])
    in_all: Minute = Minute()

    def note(self, token: TokenId, at: float) -> None:
        """One more, `at` seconds since the epoch."""
        self.by_token[token] = self.by_token.get(token, Minute()).after(at)
        self.in_all = self.in_all.after(at)

    def turn(self, token: TokenId) -> tuple[int, int]:
        """Which of its minute the last one was: of its token's, and of all."""
        return self.by_token.get(token, Minute()).count, self.in_all.count

    def full(self, token: TokenId, limits: JoinLimits, said: int | None, now: float) -> TooMany | None:
        """Whether one more would be too many in the minute that it is at `now`. `said`: the token's own number."""
        why = beyond(self.by_token.get(token, Minute()).seen(now) + 1, self.in_all.seen(now) + 1, limits, said)
        return None if why is None else TooMany(why, MINUTE_S - now % MINUTE_S)


def beyond(by_token: int, in_all: int, limits: JoinLimits, said: int | None) -> str | None:
    """Why a registration is one too many, the `by_token`th of its token and the `in_all`th of all within a minute.

    None where it isn't.
    """
    most = limits.per_token if said is None else said
    if by_token > most:
        return f"{most} registrations within a minute is all that this token allows"
    if in_all > limits.in_all:
        return f"{limits.in_all} registrations within a minute is all that this mesh takes"
    return None


@dataclass(slots=True)
class Registrations:
    """Give it every commit of the log in order. A function of the log alone: no limit is folded in."""

    waiting: dict[NodeId, Waiting] = field(default_factory=dict[NodeId, Waiting])
    """Nodes that wait for approval, oldest first."""
    approved: dict[NodeId, None] = field(default_factory=dict[NodeId, None])
    pace: Pace = field(default_factory=Pace)
    """Registrations of nodes that aren't approved."""

    def apply(self, recorded: Recorded) -> None:
        """Fold one commit."""
        if recorded.aggregate.kind == "node":
            self._apply_node(NodeId(recorded.aggregate.key), recorded)
        elif recorded.aggregate.kind == "request":
            for fact in recorded.facts:
                if isinstance(fact, JoinRequested) and self.counts(fact.public_key):
                    self.pace.note(fact.token, recorded.at)

    def counts(self, public_key: str) -> bool:
        """Whether a registration by this key is one of those that are limited: those of approved nodes are not."""
        try:
            return node_id_of(public_key) not in self.approved
        except ValueError:
            return True

    def crowded(
        self, token: TokenId, limits: JoinLimits, said: int | None, *, more: int = 0, more_in_all: int = 0
    ) -> TooMany | None:
        """Whether one node more that waits for approval would be too many. `said`: the token's own number; `more`:
        nodes, of this token and in all, that are about to wait and are not folded yet."""
        most = limits.per_token if said is None else said
        if sum(1 for each in self.waiting.values() if each.token == token) + more >= most:
            what = f"{most} nodes that joined with this token wait for approval already, and no more may at once"
        elif len(self.waiting) + more_in_all >= limits.in_all:
            what = f"{limits.in_all} nodes wait for approval already, and no more may at once"
        else:
            return None
        return TooMany(f"{what}: an admin approves or rejects them first", FULL_S)

    def _apply_node(self, id: NodeId, recorded: Recorded) -> None:
        for fact in recorded.facts:
            match fact:
                case Joined():
                    self.waiting[id] = Waiting(fact.token, recorded.at)
                case Approved():
                    self.waiting.pop(id, None)
                    self.approved[id] = None
                case Rejected():
                    self.waiting.pop(id, None)
                case Removed() | Expired():
                    self.waiting.pop(id, None)
                    self.approved.pop(id, None)
                case _:
                    pass

"""For how long each model's demand has been as it is. Kept in memory: whoever begins to look begins to count."""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from weft_contracts.facts.sizing import DemandSeen, ScalingPolicy
from weft_contracts.ids import ModelId
from weft_fleet import ModelView
from weft_placement.demand_board import NONE, DemandBoard, Total

from weft_reconciler.domain.resize import at_capacity, fits, is_busy, spares_tokens
from weft_reconciler.domain.situation import may_be_sized, proven_places, serving_places, size_of, wanted_spec
from weft_reconciler.domain.state import State

TOKENS_OVER_S: Final = 10.0
"""Tokens a second are those of so many seconds: a signal comes each second, and one of them is soon a second late."""


@dataclass(slots=True)
class _Since:
    """When each condition began; None: it doesn't hold."""

    busy: float | None = None
    idle: float | None = None
    spare: float | None = None
    size: int = -1
    """That one fewer than these would do is what `spare` is about."""
    known: bool = False
    ready: int = 0
    most_running: int = 0
    """At one look since all are busy."""
    made: deque[tuple[float, int]] = field(default_factory=deque[tuple[float, int]])
    """When how many tokens had been made, at the looks of the last seconds; empty: that isn't known, or not needed."""

    @property
    def tokens_per_s(self) -> float | None:
        """None: not known for long enough."""
        if not self.made:
            return None
        (began, first), (now, last) = self.made[0], self.made[-1]
        return round((last - first) / (now - began), 3) if now - began >= TOKENS_OVER_S else None


@dataclass(slots=True)
class DemandWatch:
    """Looks at the board about once a second, for each model that may be sized and has replicas."""

    board: DemandBoard = field(default_factory=DemandBoard)
    near: tuple[ModelId, ...] = ()
    """Models whose demand has been as it is for long enough that another size may be due."""
    looked: float = 0.0
    _since: dict[ModelId, _Since] = field(default_factory=dict[ModelId, _Since])

    @property
    def models(self) -> tuple[ModelId, ...]:
        """Those that were looked at last."""
        return tuple(self._since)

    def look(self, state: State, now: float) -> None:
        """Note how things stand. `now`: the listener's own time."""
        board = self.board
        board.look(now)
        self.looked = now
        totals, known = board.totals(now), board.known(now)
        since: dict[ModelId, _Since] = {}
        near: list[ModelId] = []
        for id in state.elastic:
            model = state.fleet.models.get(id)
            if model is None or not model.replicas or not may_be_sized(model):
                continue
            own = since[id] = self._since.get(id) or _Since()
            own.known = known and not board.left_out(id)
            self._note(state, model, own, totals.get(id, NONE), now)
            if self._is_near(model, own, now):
                near.append(id)
        self._since, self.near = since, tuple(near)
        board.forget_models(but=state.elastic)

    def seen(self, model: ModelId) -> DemandSeen:
        """What there was to do for a model at the last look, and for how long it had been so."""
        since, now = self._since.get(model) or _Since(), self.looked
        return DemandSeen(
            gateways=self.board.readings(model, now),
            known=since.known,
            busy_s=_for(since.busy, now),
            ready=since.ready,
            most_running=since.most_running,
            idle_s=_for(since.idle, now),
            spare_s=_for(since.spare, now),
            tokens_per_s=since.tokens_per_s,
        )

    def _note(self, state: State, model: ModelView, since: _Since, total: Total, now: float) -> None:
        size, policy = size_of(model), model.scaling.over(self.board.policy)
        self._note_tokens(model, since, size, policy, now)
        rate = since.tokens_per_s
        busy = is_busy(total.running, total.waiting, len(model.ready), serving_places(model))
        busy = busy or at_capacity(rate, len(model.ready), policy)
        if len(model.ready) > since.ready:
            since.busy, since.most_running = None, 0  # what was seen to wait hasn't met the new one yet
        since.ready = len(model.ready)
        since.busy = _held(since.busy, busy, now)
        since.most_running = max(since.most_running, total.running) if busy else 0
        since.idle = _held(since.idle, since.known and not total.wanted and not _loads(state, model), now)
        used = self.board.last_used.get(model.id)
        if since.idle is not None and used is not None:
            since.idle = max(since.idle, used)  # what began and ended between two looks
        if since.size != size:
            since.spare, since.size = None, size
        room = since.known and fits(total.wanted, size - 1, proven_places(model), policy)
        room = room and spares_tokens(rate, size - 1, policy)
        since.spare = _held(since.spare, room, now)

    def _note_tokens(self, model: ModelView, since: _Since, size: int, policy: ScalingPolicy, now: float) -> None:
        """What was made counts from where all that there should be are ready, and it is known, without a gap."""
        ready, made = len(model.ready), since.made
        counts = policy.tokens_per_s > 0 and since.known and ready >= size
        if not counts or ready != since.ready:
            made.clear()
        if counts:
            made.append((now, self.board.made.get(model.id, 0)))
        while len(made) > 1 and now - made[1][0] >= TOKENS_OVER_S:
            made.popleft()

    def _is_near(self, model: ModelView, since: _Since, now: float) -> bool:
        policy = model.scaling.over(self.board.policy)
        if since.busy is not None and _for(since.busy, now) >= policy.up_after_s:
            return True
        rest = max(_for(since.idle, now), _for(since.spare, now))
        return rest >= policy.down_after_s and since.size > wanted_spec(model).min_replicas


def _held(since: float | None, holds: bool, now: float) -> float | None:
    if not holds:
        return None
    return now if since is None else since


def _for(since: float | None, now: float) -> float:
    return 0.0 if since is None else round(max(0.0, now - since), 3)


def _loads(state: State, model: ModelView) -> bool:
    """Whether a replica is on its way on a node: it isn't idle before it could serve."""
    if len(model.ready) == len(model.replicas):
        return False
    views = (state.fleet.replicas[id] for id in model.replicas)
    return any(view.wanted and view.placed is not None and view.state in ("placed", "loading") for view in views)

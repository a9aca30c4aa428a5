"""What gateways said last of what they have to do, and when that came. Figures of live gateways are added."""

from collections.abc import Container
from dataclasses import dataclass, field
from typing import NamedTuple

from weft_contracts.facts.eviction import ModelUse
from weft_contracts.facts.sizing import MOST_GATEWAYS, GatewayReading, ScalingPolicy
from weft_contracts.ids import ModelId
from weft_contracts.signals import GatewayDemand, ModelDemand


class Total(NamedTuple):
    """What there is to do for a model, as far as it is known."""

    running: int
    waiting: int
    loading: int

    @property
    def wanted(self) -> int:
        """Requests, wherever they stand."""
        return self.running + self.waiting + self.loading


NONE = Total(0, 0, 0)


@dataclass(frozen=True, slots=True)
class _Said:
    demand: GatewayDemand
    models: dict[ModelId, ModelDemand]
    at: float


@dataclass(slots=True)
class DemandBoard:
    """Fed with what comes; times are the listener's own, in seconds, and never go back."""

    policy: ScalingPolicy = field(default_factory=ScalingPolicy)
    crowded: bool = False
    """More gateways spoke than are listened to."""
    last_used: dict[ModelId, float] = field(default_factory=dict[ModelId, float])
    """When something of a model last ran at any gateway, those that are no more among them."""
    listening_since: float | None = None
    """When a gateway was heard first; None: none ever was. Nobody may know any more what was used before."""
    made: dict[ModelId, int] = field(default_factory=dict[ModelId, int])
    """Output tokens of a model since it was first heard of, over all gateways. Never less than before."""
    _said: dict[str, _Said] = field(default_factory=dict[str, _Said])

    def heard(self, gateway: str, demand: GatewayDemand, now: float) -> None:
        """Note a signal. Who says that it leaves is gone at once."""
        if self.listening_since is None:
            self.listening_since = now
        before = self._said[gateway].models if gateway in self._said else {}
        for each in demand.models:
            if (earlier := before.get(each.model)) is not None and each.tokens > earlier.tokens:
                self.made[each.model] = self.made.get(each.model, 0) + each.tokens - earlier.tokens
            used = now - each.idle_s
            if used > self.last_used.get(each.model, used - 1):
                self.last_used[each.model] = used
        if demand.leaving:
            if self._said.pop(gateway, None) is not None:
                self.crowded = False
        elif gateway in self._said or len(self._said) < MOST_GATEWAYS:
            self._said[gateway] = _Said(demand, {each.model: each for each in demand.models}, now)
        else:
            self.crowded = True

    def look(self, now: float) -> None:
        """Forget the gateways that are no more."""
        for gateway, said in tuple(self._said.items()):
            if now - said.at > self.policy.gone_s:
                del self._said[gateway]
                self.crowded = False

    def forget_models(self, but: Container[ModelId]) -> None:
        """Keep no time of use and no tokens but of these."""
        for known in (self.last_used, self.made):
            for model in [each for each in known if each not in but]:
                del known[model]

    @property
    def gateways(self) -> int:
        """That are listened to, silent ones included."""
        return len(self._said)

    def readings(self, model: ModelId, now: float) -> tuple[GatewayReading, ...]:
        """What each gateway said of a model, by name."""
        return tuple(self._reading(gateway, model, now) for gateway in sorted(self._said))

    def use(self, model: ModelId, now: float) -> ModelUse:
        """What is known of a model's last use."""
        readings = self.readings(model, now)
        known = self.known(now) and not self.left_out(model)
        if not known or self.listening_since is None or any(r.running + r.waiting + r.loading for r in readings):
            return ModelUse(model=model, known=known, gateways=readings)
        last = max(self.last_used.get(model, self.listening_since), self.listening_since)
        return ModelUse(model=model, known=True, idle_s=round(max(0.0, now - last), 3), gateways=readings)

    def known(self, now: float) -> bool:
        """Whether every gateway was heard of late, and there is one: unknown is never idle."""
        stale = self.policy.stale_s
        return bool(self._said) and not self.crowded and all(now - said.at <= stale for said in self._said.values())

    def left_out(self, model: ModelId) -> bool:
        """Whether a gateway had no room to tell of a model."""
        return any(said.demand.left_out and model not in said.models for said in self._said.values())

    def totals(self, now: float) -> dict[ModelId, Total]:
        """Of every model that was told of lately, over all gateways."""
        found: dict[ModelId, Total] = {}
        for said in self._said.values():
            if now - said.at > self.policy.stale_s:
                continue
            for id, told in said.models.items():
                running, waiting, loading = found.get(id, NONE)
                found[id] = Total(running + told.running, waiting + told.waiting, loading + told.loading)
        return found

    def _reading(self, gateway: str, model: ModelId, now: float) -> GatewayReading:
        said = self._said[gateway]
        age = round(max(0.0, now - said.at), 3)
        told = said.models.get(model)
        fresh = now - said.at <= self.policy.stale_s
        if told is None:
            return GatewayReading(gateway=gateway, age_s=age, known=fresh and not said.demand.left_out)
        return GatewayReading(
            gateway=gateway,
            age_s=age,
            known=fresh,
            running=told.running,
            waiting=told.waiting,
            loading=told.loading,
            idle_s=told.idle_s,
        )

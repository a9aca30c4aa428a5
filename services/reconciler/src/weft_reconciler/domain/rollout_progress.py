"""How far the newest revision of each model got, and whether it took too long to get further."""

from dataclasses import dataclass, field

from weft_contracts.ids import ModelId
from weft_fleet import Fleet, ModelView

from weft_reconciler.domain.decision_time import DecisionTime


@dataclass(frozen=True, slots=True)
class Progress:
    """Of one revision."""

    at: float
    """When it last got further, in seconds since the epoch: it was accepted, tried again, woken, or more were ready."""
    most: int = 0
    """Of its replicas that were ready at one moment."""


@dataclass(slots=True)
class RolloutProgress:
    """By model. What starts again and again gets no further by it."""

    by_model: dict[ModelId, Progress] = field(default_factory=dict[ModelId, Progress])

    def begin(self, model: ModelId, at: float) -> None:
        """From here on it counts: a revision was accepted, or is tried again."""
        self.by_model[model] = Progress(at)

    def woken(self, model: ModelId, at: float) -> None:
        """It slept, and a sleeping one gets nowhere."""
        if (known := self.by_model.get(model)) is not None:
            self.by_model[model] = Progress(at, known.most)

    def note(self, fleet: Fleet, model: ModelView, at: float) -> None:
        """Replicas of a model that is rolled out became ready, or no more."""
        newest = model.newest
        ready = sum(model.of(fleet.replicas[id].revision).runs_as(newest) for id in model.ready)
        if ready > self.by_model.get(model.id, Progress(at)).most:
            self.by_model[model.id] = Progress(at, ready)

    def forget(self, model: ModelId) -> None:
        """It is deleted."""
        self.by_model.pop(model, None)

    def is_overdue(self, model: ModelView, time: DecisionTime) -> bool:
        """Whether its newest revision got no further within what its rollout gives it, as far as this decider saw."""
        known, given = self.by_model.get(model.id), model.rules.progress_s
        return bool(given) and known is not None and time.waited(known.at) >= given

"""How a model stands, as far as its size depends on it: all of it from the log."""

from dataclasses import dataclass

from weft_contracts.facts.values import ModelSpec
from weft_fleet import ModelView, ReplicaView, is_elastic, within_bounds

from weft_reconciler.domain.state import State

_COMING = frozenset({"added", "unplaceable", "placed", "loading", "stopped", "failed"})


@dataclass(frozen=True, slots=True)
class Situation:
    """What there is and what may be."""

    least: int
    most: int
    """0: no upper bound."""
    size: int
    """How many should serve until something else is decided."""
    ready: int
    coming: int
    """Replicas that are wanted and not ready yet, or start again; those that have no place among them."""
    places: int
    """Requests that one replica runs at once, by the spec."""
    proven: int
    """And as many as it was seen to run when all were busy last."""
    resting_s: float
    """Since the size changed last; without end where it never did."""
    grew: bool
    """It became larger then."""
    braked: bool = False
    """The brake holds, so that nothing is taken away."""

    def bounded(self, replicas: int) -> int:
        """The nearest number that the spec allows."""
        replicas = max(self.least, replicas)
        return min(replicas, self.most) if self.most else replicas


def wanted_spec(model: ModelView) -> ModelSpec:
    """Of the revision that there should be in the end. Asked of every model each second, so without making views."""
    return model.current.spec if model.revision in model.given_up else model.spec


def serving_places(model: ModelView) -> int:
    """Requests that one replica runs at once, by the spec of the revision that serves."""
    established = model.established == model.revision
    return (model.spec if established else model.serving.spec).concurrency


def size_of(model: ModelView) -> int:
    """How many should serve: what was decided last, or what is there where nothing ever was."""
    known = len(model.ready) if model.size is None else model.size.replicas
    return within_bounds(wanted_spec(model), known)


def proven_places(model: ModelView) -> int:
    """Requests that one replica can be counted on for."""
    said = serving_places(model)
    return said if model.size is None else min(said, model.size.places)


def may_be_sized(model: ModelView | None) -> bool:
    """Whether what there is to do says how many replicas it has."""
    if model is None or model.deleted or not is_elastic(wanted_spec(model)):
        return False
    return not model.given_up or model.unservable is None


def _comes_soon(model: ModelView, view: ReplicaView) -> bool:
    """Whether a replica, once it serves, has to do with the demand that there is now. One of a new revision does where
    another may have gone for it: then what lacks is that one, and no more room than before is to be asked for."""
    if view.revision not in model.specs:
        return False
    own = model.of(view.revision)
    return own.runs_as(model.serving) or (model.rules.max_unavailable > 0 and own.runs_as(model.current))


def situation_of(state: State, model: ModelView, now: float) -> Situation:
    """Of a model that may be sized. `now`: seconds since the epoch."""
    wanted = [view for id in model.replicas if (view := state.fleet.replicas[id]).wanted and not view.evicted]
    coming = sum(view.state in _COMING for view in wanted if _comes_soon(model, view))
    spec = wanted_spec(model)
    return Situation(
        least=spec.min_replicas,
        most=spec.max_replicas,
        size=size_of(model),
        ready=len(model.ready),
        coming=coming,
        places=serving_places(model),
        proven=proven_places(model),
        resting_s=float("inf") if model.size is None else max(0.0, now - model.size.at),
        grew=model.size is not None and model.size.replicas > model.size.was,
        braked=state.fleet.brake is not None,
    )

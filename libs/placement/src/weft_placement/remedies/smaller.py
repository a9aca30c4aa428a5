"""The same model asking for less: the largest context, concurrency or share of a device that fits, or layers."""

from collections.abc import Callable, Iterator

from weft_contracts.engines import HeaderClaim
from weft_contracts.facts.arguments import ArgumentValue
from weft_contracts.facts.machine import FileFound
from weft_contracts.facts.values import ModelSpec, Weights
from weft_fleet import Fleet

from weft_placement.claim import ClaimUnknown, offloads_of
from weft_placement.demand import Demand
from weft_placement.remedies.remedy import Step

CONTEXT_STEP = 256
"""Tokens: a smaller context is a multiple of so many."""
SHARES = 16
"""Shares of a device that are tried, the largest first."""
Smaller = tuple[ModelSpec, tuple[Step, ...]]
Fits = Callable[[ModelSpec], bool]


def smaller(fleet: Fleet, demand: Demand, shares: list[float], fits: Fits) -> Iterator[Smaller | None]:
    """Specs that ask for less and fit, each with what it says otherwise; None: others may have their turn. `shares`:
    what devices have free, each as a share of its own memory."""
    spec, formula = demand.spec, demand.profile.claim
    if not isinstance(formula, HeaderClaim):
        return
    by_context = _context(spec, fits)
    yield None
    by_concurrency = _concurrency(spec, fits)
    yield from (each for each in (by_context, by_concurrency) if each is not None)
    if by_context is None and by_concurrency is None and spec.concurrency > 1:
        one = spec.model_copy(update={"concurrency": 1})
        if (both := _context(one, fits)) is not None:
            yield both[0], (_fewer_at_once(1), *both[1])
    if formula.share_argument is not None:
        yield from _share(spec, formula.share_argument, shares, fits)
    if formula.layers_argument is not None:
        yield from _layers(fleet, demand, formula.layers_argument, fits)


def _context(spec: ModelSpec, fits: Fits) -> Smaller | None:
    def shorter(steps: int) -> ModelSpec:
        return spec.model_copy(update={"context_tokens": steps * CONTEXT_STEP})

    most = largest((spec.context_tokens - 1) // CONTEXT_STEP, lambda steps: fits(shorter(steps)))
    if not most:
        return None
    tokens = most * CONTEXT_STEP
    told = f"a context of {tokens} tokens instead of {spec.context_tokens} (--context {tokens})"
    step = Step("context", told, amount=spec.context_tokens - tokens, arguments={"context_tokens": tokens})
    return shorter(most), (step,)


def _concurrency(spec: ModelSpec, fits: Fits) -> Smaller | None:
    def fewer(count: int) -> ModelSpec:
        return spec.model_copy(update={"concurrency": count})

    most = largest(spec.concurrency - 1, lambda count: fits(fewer(count)))
    return (fewer(most), (_fewer_at_once(most),)) if most else None


def _fewer_at_once(count: int) -> Step:
    requests = "1 request" if count == 1 else f"{count} requests"
    told = f"{requests} at once in each replica (--concurrency {count})"
    return Step("concurrency", told, amount=-count, arguments={"concurrency": count})


def _share(spec: ModelSpec, name: str, shares: list[float], fits: Fits) -> Iterator[Smaller | None]:
    """Where the spec fixes a share of each device, the largest smaller one that fits."""
    given = spec.engine_args.get(name)
    if isinstance(given, bool) or not isinstance(given, int | float):
        return
    below = sorted({int(share * 100) / 100 for share in shares if 0.01 <= share < given}, reverse=True)
    for share in below[:SHARES]:
        yield None
        less = _with_argument(spec, name, share)
        if fits(less):
            told = f"{name} of {share:g} instead of {given:g} (--engine-arg {name}={share:g})"
            yield less, (Step("share", told, arguments={name: share}),)
            return


def _layers(fleet: Fleet, demand: Demand, name: str, fits: Fits) -> Iterator[Smaller | None]:
    """As many layers on an accelerator as fit, the rest in the machine's memory."""
    spec = demand.spec
    weights = _with_layers(fleet, demand)
    try:
        offloads = () if weights is None else offloads_of(spec.model_copy(update={"weights": weights}), demand.profile)
    except ClaimUnknown:
        return
    if weights is None:
        return
    known = spec.model_copy(update={"weights": weights})
    for count in range(len(offloads), 0, -1):
        yield None
        if fits(divided := _with_argument(known, name, count)):
            told = (
                f"{count} of its {weights.layers} layers on an accelerator, the rest in the machine's memory"
                f" (--engine-arg {name}={count})"
            )
            yield divided, (Step("layers", told, arguments={name: count}),)
            return


def _with_layers(fleet: Fleet, demand: Demand) -> Weights | None:
    """Its header with the sizes of single layers, as a node told them; None: no node did."""
    if demand.spec.weights.layer_runs:
        return demand.spec.weights
    for node in fleet.nodes.values():
        found = node.file(demand.source, demand.spec.engine)
        if isinstance(found, FileFound) and found.weights.layer_runs and found.weights.same_as(demand.spec.weights):
            return found.weights
    return None


def _with_argument(spec: ModelSpec, name: str, value: ArgumentValue) -> ModelSpec:
    return spec.model_copy(update={"engine_args": {**spec.engine_args, name: value}})


def largest(most: int, fits: Callable[[int], bool]) -> int:
    """The largest of 1 to `most` that fits, where all up to some number do; 0: none. Asks about log₂ times."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low

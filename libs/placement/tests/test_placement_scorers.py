"""What each scorer says of a node; and that each filter and each scorer is asked."""

from pathlib import Path
from typing import Literal

import pytest
import weft_placement
from weft_contracts.facts.machine import FileFound
from weft_contracts.facts.node import Assigned
from weft_contracts.facts.values import DeviceClaim, Member, ModelSpec, PathSource, SimulatedSource, Source, Weights
from weft_contracts.ids import InspectionId
from weft_contracts.subjects import machine, node
from weft_placement import Policy
from weft_placement.decide import demand_for
from weft_placement.filters import FILTERS
from weft_placement.fit.option import Option
from weft_placement.policy import _WEIGHTS
from weft_placement.scorers import score, weighted
from weft_testing.fleet_log import FleetLog

GIB = 1 << 30
TINY = Weights(format="gguf", weight_bytes=1_000_000, kv_bytes_per_token=100)
SIMULATED, AT_PATH = SimulatedSource(), PathSource(path="/m")
FOUND = FileFound(inspection=InspectionId("i-1"), source="path:/m", size=1, weights=TINY)
EVERY = Policy(apart="no", slots=64, **dict.fromkeys(_WEIGHTS, 1.0))
"""Each weight counts."""


def said(
    *, devices: int = 1, part: float = 0.25, beside: int = 0, source: Source = SIMULATED, found: bool = False
) -> dict[str, float]:
    """Every scorer's figure for a node with so many replicas of the model, for an option of these devices."""
    log = FleetLog()
    id = log.node("a", GIB, GIB)
    engine = "simulated" if source is SIMULATED else "llama.cpp"
    model = log.model("m", ModelSpec(source=source, engine=engine, weights=TINY), replicas=beside + 1)
    *others, waiting = log.fleet.replicas.values()
    for other in others:
        digest, spec = log.fleet.spec_of(other)
        members = (Member(node=id, rank=0, devices=()),)
        fact = {"replica": other.id, "model": model, "model_name": "m", "revision": 1, "epoch": 1, "members": members}
        log.add(node(id), Assigned.model_validate(fact | {"digest": digest, "spec": spec}))
    if found:
        log.add(machine(id), FOUND)
    option = Option(tuple(DeviceClaim(index=index, bytes=1) for index in range(devices)), part)
    demand = demand_for(log.fleet, waiting, EVERY)
    figures: dict[str, float] = {}
    for strategy in ("binpack", "spread"):
        scorers = weighted(EVERY, strategy)
        figures |= score(scorers, log.fleet.nodes[id], log.fleet.assigned(id), demand, option)[1]
    return figures


def test_an_idle_node_is_better_than_one_with_replicas() -> None:
    assert [1.0, 0.5] == [said(beside=number)["idle"] for number in (0, 1)]


def test_to_pack_is_to_fill_what_is_begun() -> None:
    assert [0.25, 0.75] == [said(part=part)["binpack"] for part in (0.25, 0.75)]


def test_to_spread_is_to_leave_much_free_and_to_keep_away_from_the_same_model() -> None:
    assert [0.75, 0.25] == [said(part=part)["spread"] for part in (0.25, 0.75)]
    assert 0.375 == said(beside=1)["spread"]


def test_fewer_devices_are_better() -> None:
    assert [1.0, 0.5] == [said(devices=number)["devices"] for number in (1, 2)]


@pytest.mark.parametrize(
    ("source", "found", "figure"), [(SIMULATED, False, 1), (AT_PATH, False, 0), (AT_PATH, True, 1)]
)
def test_a_node_that_has_the_files_is_better(source: Source, found: bool, figure: float) -> None:
    assert figure == said(source=source, found=found)["files"]


@pytest.mark.parametrize("strategy", ["binpack", "spread"])
def test_weights_add_up_to_one_and_what_weighs_nothing_is_not_asked(strategy: Literal["binpack", "spread"]) -> None:
    assert sum(weight for _, _, weight in weighted(EVERY, strategy)) == pytest.approx(1)
    assert "files" not in {name for name, _, _ in weighted(Policy(files=0), strategy)}


def test_every_filter_and_every_scorer_that_there_is_is_asked() -> None:
    scorers = {scorer for strategy in ("binpack", "spread") for _, scorer, _ in weighted(EVERY, strategy)}
    assert modules("filters") == {passes.__module__ for passes in FILTERS} | {"weft_placement.filters.avoid"}
    assert modules("scorers") == {each.__module__ for each in scorers} | {"weft_placement.scorers.apart"}


def modules(kind: str) -> set[str]:
    files = (Path(weft_placement.__path__[0]) / kind).glob("*.py")
    return {f"weft_placement.{kind}.{file.stem}" for file in files if file.stem != "__init__"}

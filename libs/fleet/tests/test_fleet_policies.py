"""Which policies there are, and who names them."""

from weft_contracts.facts.mesh import PolicyChosen, PolicySet, PolicyWithdrawn
from weft_contracts.facts.model import Deleted
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import ModelSpec
from weft_contracts.policies import PlacementPolicy, PolicyWeights
from weft_contracts.subjects import MESH, model
from weft_fleet.policies_named import models_by_policy, policy_names
from weft_testing.fleet_log import FleetLog

MINE = PlacementPolicy(name="mine", weights=PolicyWeights(idle=1.0))


def spec(policy: str = "") -> ModelSpec:
    return ModelSpec(source=SimulatedSource(), engine="simulated", policy=policy)


def test_a_policy_told_again_replaces_the_one_of_its_name_and_a_withdrawn_one_is_gone() -> None:
    log = FleetLog()
    other = MINE.model_copy(update={"slots": 2})
    for policy in (MINE, PlacementPolicy(name="a", weights=MINE.weights), other):
        log.add(MESH, PolicySet(policy=policy))
    assert ["balanced", "binpack", "spread", "a", "mine"] == policy_names(log.fleet)
    assert other == log.fleet.policies["mine"]
    log.add(MESH, PolicyWithdrawn(name="a"))
    assert ["balanced", "binpack", "spread", "mine"] == policy_names(log.fleet)


def test_the_meshs_own_policy_is_balanced_until_another_is_chosen() -> None:
    log = FleetLog()
    assert "balanced" == log.fleet.policy
    log.add(MESH, PolicyChosen(name="spread"))
    assert "spread" == log.fleet.policy


def test_a_policy_is_named_by_models_of_which_a_live_revision_names_it() -> None:
    log = FleetLog()
    # given a model that names one and replicas of an older revision that named another, one that names none, one gone
    log.model("moved", spec("mine"), replicas=1)
    log.model("moved", spec("spread"))
    log.model("plain", spec())
    gone = log.model("gone", spec("mine"))
    log.add(model(gone), Deleted())
    log.model("also", spec("spread"))
    assert {"mine": ["moved"], "spread": ["also", "moved"]} == models_by_policy(log.fleet)

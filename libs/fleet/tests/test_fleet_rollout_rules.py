"""What is said of a model's rollouts and sizes beside its revisions, as the log tells it."""

from weft_contracts.facts.model import RolledBack, RolloutSet, ScalingSet
from weft_contracts.facts.rollout import ReconcilingReceipt, RolloutRules
from weft_contracts.facts.sizing import OwnScaling, ScalingPolicy
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import ModelId
from weft_contracts.subjects import model
from weft_fleet import ModelView
from weft_testing.fleet_log import FleetLog

ID = ModelId("m-toy")
SPEC = ModelSpec(source=SimulatedSource(), engine="simulated")


def a_model() -> FleetLog:
    log = FleetLog()
    log.model("toy", SPEC)
    return log


def view(log: FleetLog) -> ModelView:
    return log.fleet.models[ID]


def test_rules_and_figures_stand_until_others_are_told_and_over_revisions() -> None:
    log = a_model()
    assert (RolloutRules(), OwnScaling()) == (view(log).rules, view(log).scaling)

    rules, own = RolloutRules(max_surge=0, max_unavailable=1), OwnScaling(spare=0.5)
    log.add(model(ID), RolloutSet(rules=rules))
    log.add(model(ID), ScalingSet(own=own))
    log.model("toy", SPEC.model_copy(update={"concurrency": 3}))

    assert (2, rules, own) == (view(log).revision, view(log).rules, view(log).scaling)


def test_a_rollback_changes_nothing_that_is_not_said_beside_it() -> None:
    log = a_model()
    before = view(log)
    receipt = ReconcilingReceipt(position=1, decided_at=5.0)
    log.add(model(ID), RolledBack(revision=2, to=1, why="so", receipt=receipt))

    after = view(log)
    assert (before.revision, before.given_up, before.specs) == (after.revision, after.given_up, after.specs)


def test_own_figures_stand_in_the_place_of_the_meshs_and_no_others() -> None:
    mesh = ScalingPolicy(up_after_s=9, down_after_s=99)
    policy = OwnScaling(down_after_s=50).over(mesh)

    assert (9, 50, mesh.spare) == (policy.up_after_s, policy.down_after_s, policy.spare)
    assert mesh == OwnScaling().over(mesh)


def test_the_revision_before_is_the_last_that_ran_otherwise_and_was_ready() -> None:
    log = a_model()
    assert view(log).revision_before() is None
    log.model("toy", SPEC.model_copy(update={"concurrency": 3}))
    assert view(log).revision_before() is None, "none of the first was ever ready"

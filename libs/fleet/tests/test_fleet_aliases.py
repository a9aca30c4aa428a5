"""Aliases as the log knows them, and which models they stand for."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.aliases import AliasRule, AliasTarget
from weft_contracts.facts.fact import Unknown
from weft_contracts.facts.name import Aliased, Claimed, Released
from weft_contracts.ids import ModelId
from weft_contracts.subjects import name
from weft_fleet import AliasView, Fleet
from weft_fleet.alias_view import aliases_of
from weft_testing.fleet_log import FleetLog, refold

LOCAL, CLOUD = ModelId("m-local"), ModelId("m-cloud")
NAMES = ("a", "b", "c")


def alias(called: str, *models: ModelId, rule: AliasRule = "weights") -> Aliased:
    return Aliased(name=called, rule=rule, targets=tuple(AliasTarget(model=model) for model in models))


def test_an_alias_that_is_set_again_is_replaced_whole() -> None:
    log = FleetLog()
    log.add(name("model", "chat"), alias("chat", LOCAL))

    later = log.add(name("model", "chat"), alias("chat", CLOUD, rule="order"))

    key = name("model", "chat").key
    assert {"chat": AliasView("chat", key, "order", (AliasTarget(model=CLOUD),), later.at)} == log.fleet.aliases
    assert refold(log.commits).digest() == log.fleet.digest()


def test_an_alias_that_is_removed_is_gone_and_others_stay() -> None:
    log = FleetLog()
    log.add(name("model", "chat"), alias("chat", LOCAL))
    log.add(name("model", "code"), alias("code", LOCAL, CLOUD))

    log.add(name("model", "chat"), Released())

    assert ["code"] == list(log.fleet.aliases)
    assert ["code"] == aliases_of(log.fleet.aliases, CLOUD)
    assert [] == aliases_of(log.fleet.aliases, ModelId("m-other"))


def test_a_name_that_a_model_claims_is_no_alias_any_more() -> None:
    """A service from before there were aliases may let a model have the name: then it is the model's alone."""
    log = FleetLog()
    log.add(name("model", "chat"), alias("chat", LOCAL))

    log.add(name("model", "chat"), Claimed(name="chat", owner=CLOUD))

    assert {} == log.fleet.aliases


def test_a_node_of_the_same_name_changes_no_alias() -> None:
    log = FleetLog()
    log.add(name("model", "chat"), alias("chat", LOCAL))

    log.add(name("node", "chat"), Claimed(name="chat", owner="n-a"))
    log.add(name("node", "chat"), Released())

    assert ["chat"] == list(log.fleet.aliases)


def test_a_fact_that_is_not_known_here_changes_no_alias() -> None:
    log = FleetLog()
    log.add(name("model", "chat"), alias("chat", LOCAL))

    log.add(name("model", "chat"), Unknown(type="sung", v=1, skippable=True))

    assert ["chat"] == list(log.fleet.aliases)


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(["alias", "claim", "release"])), max_size=20))
def test_a_name_is_what_was_said_of_it_last(said: list[tuple[str, str]]) -> None:
    log = FleetLog()
    for called, what in said:
        made = {"alias": alias(called, LOCAL), "claim": Claimed(name=called, owner=LOCAL), "release": Released()}
        log.add(name("model", called), made[what])

    last = dict(said)

    assert {called for called, what in last.items() if what == "alias"} == set(log.fleet.aliases)
    fleet = Fleet()
    for commit in log.commits:
        fleet.apply(replace(commit))
    assert fleet.aliases == log.fleet.aliases

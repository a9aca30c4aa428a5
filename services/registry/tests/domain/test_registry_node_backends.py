"""What a node is to have of engines ahead of need, what is to go from it, and upgrades."""

import pytest
from weft_contracts import subjects
from weft_contracts.backends import BackendRecipe, BackendVariant
from weft_contracts.engines import BUILTIN
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.machine import InstallFailed, Reported
from weft_contracts.facts.mesh import BackendSet, BackendUpgraded, EngineProfileSet
from weft_contracts.facts.model import Scaled, SpecAccepted
from weft_contracts.facts.node import BackendRetired, BackendWanted
from weft_contracts.facts.request import (
    BackendInstallRequested,
    BackendRemovalRequested,
    BackendUpgradeRequested,
    Fulfilled,
    Rejected,
)
from weft_contracts.facts.run import Loading
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import Device, Hardware, InstalledBackend, Installs, ModelSpec
from weft_contracts.ids import Incarnation, ModelId, ReplicaId
from weft_contracts.subjects import MESH
from weft_fleet import NodeView

from .registry_story import Story, assigned

ECHO = BUILTIN["simulated"].model_copy(update={"name": "echo", "vendors": ("cpu", "nvidia")})
ONE = BackendVariant(vendor="cpu", package="echo", version="1", requirements=("echo==1",), disk=1000)
TWO = ONE.model_copy(update={"version": "2", "requirements": ("echo==2",)})
GPU = ONE.model_copy(update={"vendor": "nvidia"})
CPU = Device(index=0, vendor="cpu", name="cpu", memory=1 << 30)
H100 = Device(index=1, vendor="nvidia", name="H100", memory=1 << 36)
REPLICA = ReplicaId("m-x-1")


class Node:
    """A node that installs, in a mesh that knows the echo by a recipe."""

    def __init__(self, *variants: BackendVariant) -> None:
        self.story = Story()
        (self.id,) = self.story.nodes(1)
        self.story.log.given(MESH, EngineProfileSet(profile=ECHO))
        self.recipe(*variants)
        self.report()

    @property
    def view(self) -> NodeView:
        return self.story.state.fleet.nodes[self.id]

    @property
    def said(self) -> list[Fact]:
        """What the registry said of the node's backends."""
        return [
            f for f in self.story.log.facts(subjects.node(self.id)) if isinstance(f, BackendWanted | BackendRetired)
        ]

    def recipe(self, *variants: BackendVariant) -> None:
        self.story.log.given(MESH, BackendSet(recipe=BackendRecipe(engine="echo", variants=variants)))
        self.story.settle()

    def report(
        self,
        *made: BackendVariant,
        installs: Installs | None = Installs(disk_free=1000),  # noqa: B008 - frozen
        devices: tuple[Device, ...] = (CPU,),
    ) -> None:
        environments = tuple(
            InstalledBackend(
                name=f"echo-{v.version}", engine="echo", vendor=v.vendor, version=v.version, recipe=v.digest
            )
            for v in made
        )
        hardware = Hardware(cpus=2, memory=1 << 30, devices=devices)
        fact = Reported(
            hardware=hardware, backends=(), builtins=(), agent_version="1", installs=installs, environments=environments
        )
        self.story.log.given(subjects.machine(self.id), fact)
        self.story.settle()

    def runs_in(self, environment: str) -> None:
        """A replica of the echo is assigned here and loads in an environment."""
        spec = ModelSpec(source=SimulatedSource(), engine="echo")
        accepted = SpecAccepted(name="m", revision=1, spec=spec, digest="d")
        scaled = Scaled(revision=1, add=(REPLICA,), why="1 wanted")
        self.story.log.given(subjects.model(ModelId("m-x")), accepted, scaled)
        self.story.log.given(subjects.node(self.id), assigned(self.id, REPLICA, spec))
        loading = Loading(epoch=1, incarnation=Incarnation("i-1"), backend=environment)
        self.story.log.given(subjects.run(self.id, REPLICA), loading)
        self.story.settle()

    def install(self, engine: str = "echo") -> Fulfilled | Rejected:
        return self._outcome(BackendInstallRequested(node=self.id, engine=engine))

    def uninstall(self, version: str = "") -> Fulfilled | Rejected:
        return self._outcome(BackendRemovalRequested(node=self.id, engine="echo", version=version))

    def upgrade(self, engine: str = "echo") -> Fulfilled | Rejected:
        return self._outcome(BackendUpgradeRequested(engine=engine))

    def _outcome(self, fact: Fact) -> Fulfilled | Rejected:
        outcome = self.story.answered(self.story.ask(fact))
        assert isinstance(outcome, Fulfilled | Rejected)
        return outcome


def test_a_node_is_to_have_an_engine_and_asked_again_nothing_more_is_said() -> None:
    node = Node(ONE)
    outcome = node.install()
    assert isinstance(outcome, Fulfilled)
    assert ("echo", "1", "cpu") == tuple(outcome.result[each] for each in ("engine", "version", "vendor"))
    assert [BackendWanted(engine="echo", variant=ONE)] == node.said
    assert isinstance(node.install(), Fulfilled)
    assert 1 == len(node.said)


def test_asked_again_after_it_failed_for_good_it_is_said_anew_so_that_it_is_tried_anew() -> None:
    node = Node(ONE)
    node.install()
    failed = InstallFailed(engine="echo", vendor="cpu", recipe=ONE.digest, reason="no libgomp", final=True)
    node.story.log.given(subjects.machine(node.id), failed)
    assert failed == node.view.wishes.faults["echo/cpu"]
    node.install()
    assert 2 == len(node.said)
    assert not node.view.wishes.faults


def test_on_a_node_with_accelerators_it_is_for_those() -> None:
    node = Node(ONE, GPU)
    node.report(devices=(CPU, H100))
    node.install()
    assert [BackendWanted(engine="echo", variant=GPU)] == node.said


@pytest.mark.parametrize(
    ("installs", "words"),
    [
        (Installs(allowed=False), "node-1 can't install echo: it may install none"),
        (Installs(disk_free=999), "node-1 can't install echo: it has too little disk to install it"),
        (None, "node-1 can't install echo: it says nothing of what it can install"),
    ],
)
def test_a_node_that_can_not_install_it_refuses_by_name(installs: Installs | None, words: str) -> None:
    node = Node(ONE)
    node.report(installs=installs)
    outcome = node.install()
    assert isinstance(outcome, Rejected)
    assert (409, words) == (outcome.status, outcome.reason)
    assert not node.said


def test_of_an_engine_without_a_recipe_or_a_name_nothing_is_installed() -> None:
    node = Node(ONE)
    for engine, status, words in (("simulated", 409, "has no recipe of simulated"), ("x", 404, "knows no engine x")):
        outcome = node.install(engine)
        assert isinstance(outcome, Rejected)
        assert status == outcome.status
        assert words in outcome.reason
    outcome = node.upgrade("simulated")
    assert isinstance(outcome, Rejected)
    assert 404 == outcome.status


def test_what_no_recipe_names_any_more_is_to_go_once_and_what_is_named_or_wanted_stays() -> None:
    node = Node(ONE)
    node.install()
    node.report(ONE, GPU)
    assert [BackendRetired(engine="echo", environments=("echo-1",), why="no recipe names it")] == node.said[1:]
    # when the recipe changes, what was wanted ahead of need stays
    node = Node(ONE)
    node.install()
    node.report(ONE)
    node.recipe(TWO)
    assert 1 == len(node.said)
    # and what nobody wants is to go
    node = Node(ONE)
    node.report(ONE)
    assert not node.said
    node.recipe(TWO)
    node.report(ONE, TWO)
    assert [BackendRetired(engine="echo", environments=("echo-1",), why="no recipe names it")] == node.said
    assert {"echo-1": False} == node.view.wishes.retired
    # until it is gone
    node.report(TWO)
    assert not node.view.wishes.retired


def test_what_was_made_before_recipes_were_noted_stays() -> None:
    node = Node(ONE)
    node.recipe(TWO)
    unknown = InstalledBackend(name="echo-0", engine="echo", vendor="cpu", version="0")
    hardware = Hardware(cpus=2, memory=1 << 30, devices=(CPU,))
    node.story.log.given(
        subjects.machine(node.id),
        Reported(hardware=hardware, backends=(), builtins=(), agent_version="1", environments=(unknown,)),
    )
    node.story.settle()
    assert not node.said


def test_an_engine_is_removed_and_no_more_wanted_unless_a_replica_runs_in_it() -> None:
    # given one that a replica runs in
    node = Node(ONE)
    node.install()
    node.report(ONE)
    node.runs_in("echo-1")
    refused = node.uninstall()
    assert isinstance(refused, Rejected)
    assert (409, True) == (refused.status, REPLICA in refused.reason)
    # and one that nothing runs in
    node = Node(ONE)
    node.install()
    node.report(ONE)
    assert isinstance(node.uninstall(version="9"), Rejected)
    assert isinstance(node.uninstall(version="1"), Fulfilled)
    retired = BackendRetired(engine="echo", environments=("echo-1",), at_once=True, lifts=True, why="admin")
    assert [retired] == node.said[1:]
    assert ({}, {"echo-1": True}) == (node.view.wishes.wanted, node.view.wishes.retired)
    # when there is nothing left of it
    node.report()
    outcome = node.uninstall()
    assert isinstance(outcome, Rejected)
    assert (404, "node-1 has nothing to remove: it installed no echo") == (outcome.status, outcome.reason)


def test_an_upgrade_names_what_is_left_behind_and_wishes_follow_it() -> None:
    node = Node(ONE)
    node.install()
    node.report(ONE)
    assert isinstance(node.upgrade(), Fulfilled)
    assert not [fact for fact in node.story.log.facts(MESH) if isinstance(fact, BackendUpgraded)]
    # when the recipe changes
    node.recipe(TWO)
    assert [BackendWanted(engine="echo", variant=ONE)] == node.said
    outcome = node.upgrade()
    # then
    assert isinstance(outcome, Fulfilled)
    assert "2" == outcome.result["version"]
    assert BackendUpgraded(engine="echo", superseded=(ONE.digest,)) == node.story.log.facts(MESH)[-1]
    assert BackendWanted(engine="echo", variant=TWO) == node.said[1]
    node.report(ONE, TWO)
    assert {"echo-1": False} == node.view.wishes.retired


def test_a_wish_follows_an_upgrade_only_where_the_node_can_have_the_new_one() -> None:
    node = Node(ONE)
    node.install()
    node.report(ONE, installs=Installs(disk_free=0))
    node.recipe(TWO)
    node.upgrade()
    assert [BackendWanted(engine="echo", variant=ONE)] == node.said
    node.report(ONE)
    assert BackendWanted(engine="echo", variant=TWO) == node.said[1]

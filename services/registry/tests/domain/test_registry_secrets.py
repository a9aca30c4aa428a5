"""Secrets: set, set anew and removed, by name alone; and who is to have a copy."""

import pytest
from weft_contracts import subjects
from weft_contracts.facts.mesh import SecretRemoved, SecretSet
from weft_contracts.facts.model import Deleted, Scaled, SpecAccepted
from weft_contracts.facts.node import FilesRetired, FilesWanted, Removed
from weft_contracts.facts.replica import Placed
from weft_contracts.facts.request import Fulfilled, Rejected, SecretRemovalRequested, SecretRequested
from weft_contracts.facts.source import HfSource, SimulatedSource
from weft_contracts.facts.values import ModelSpec, Receipt
from weft_contracts.ids import ModelId, NodeId, ReplicaId
from weft_contracts.secrets import MOST_SECRETS
from weft_contracts.subjects import MESH
from weft_registry.domain.secrets import copies_due

from .registry_story import Story, assigned

KEYED = ModelSpec(source=SimulatedSource(), engine="simulated", engine_args={"api_key": "secret:key"})
PLAIN = KEYED.model_copy(update={"engine_args": {}})
MODEL, REPLICA = ModelId("m-1"), ReplicaId("m-1-1")
RECEIPT = Receipt(
    position=1, policy="p", policy_digest="d", seed=0, trigger="e", decided_at=0.0, refusals={}, candidates=()
)


@pytest.fixture
def story() -> Story:
    return Story()


def put(story: Story, name: str = "key", sealed: str = "a" * 32) -> Fulfilled | Rejected:
    outcome = story.answered(story.ask(SecretRequested(name=name, sealed=sealed)))
    assert isinstance(outcome, Fulfilled | Rejected)
    return outcome


def removed(story: Story, name: str = "key") -> Fulfilled | Rejected:
    outcome = story.answered(story.ask(SecretRemovalRequested(name=name)))
    assert isinstance(outcome, Fulfilled | Rejected)
    return outcome


def accept(story: Story, spec: ModelSpec, revision: int = 1) -> None:
    accepted = SpecAccepted(name="mine", revision=revision, digest=f"d-{revision}", spec=spec)
    story.log.given(subjects.model(MODEL), accepted)


def place(story: Story, on: NodeId) -> None:
    accept(story, KEYED)
    story.log.given(subjects.model(MODEL), Scaled(revision=1, add=(REPLICA,), why="wanted"))
    given = assigned(on, REPLICA, KEYED, "d-1")
    story.log.given(subjects.node(on), given)
    placed = Placed(model=MODEL, revision=1, epoch=1, members=given.members, receipt=RECEIPT)
    story.log.given(subjects.replica(REPLICA), placed)


def test_a_secret_is_known_by_its_name_and_each_value_has_a_higher_version(story: Story) -> None:
    first = put(story)
    assert isinstance(first, Fulfilled)
    assert "key" == first.result["secret"]
    second = put(story, sealed="b" * 32)
    assert isinstance(second, Fulfilled)
    assert int(first.result["version"]) < int(second.result["version"])
    last = story.log.facts(MESH)[-1]
    assert SecretSet(name="key", version=int(second.result["version"]), sealed="b" * 32) == last
    # and a name that was free again goes on above
    assert isinstance(removed(story), Fulfilled)
    third = put(story)
    assert isinstance(third, Fulfilled)
    assert int(second.result["version"]) < int(third.result["version"])


def test_there_are_no_more_than_may_be_and_those_there_are_may_change(story: Story) -> None:
    for number in range(MOST_SECRETS):
        story.log.given(MESH, SecretSet(name=f"s{number}", version=number + 1, sealed="a" * 32))
    reason = f"there are {MOST_SECRETS} secrets already, as many as may be: remove one"
    assert Rejected(status=409, reason=reason) == put(story)
    assert isinstance(put(story, "s7"), Fulfilled)
    assert isinstance(removed(story, "s8"), Fulfilled)
    assert isinstance(put(story), Fulfilled)


def test_a_secret_is_removed_once_nothing_live_names_it(story: Story) -> None:
    put(story)
    accept(story, KEYED)
    reason = "mine would be left without it: deploy what names it without it first"
    assert Rejected(status=409, reason=reason) == removed(story)
    accept(story, PLAIN, 2)
    assert Fulfilled(result={"secret": "key"}) == removed(story)
    assert SecretRemoved(name="key") == story.log.facts(MESH)[-1]
    assert Rejected(status=404, reason="there is no secret key") == removed(story)


def test_a_secret_stays_while_a_node_is_to_have_files_with_it(story: Story) -> None:
    here, other = story.nodes(2)
    put(story)
    source = HfSource(repository="o/r", revision="c" * 40, secret="key")
    wanted = FilesWanted(files="f" * 64, source=source, listed=(), bytes=1, model_name="toy")
    story.log.given(subjects.node(here), wanted)
    story.log.given(subjects.node(other), wanted)
    names = [story.state.fleet.nodes[each].name for each in (here, other)]

    both = ", ".join(f"the files of toy on {name}" for name in sorted(names))
    assert Rejected(status=409, reason=f"{both} are to be had with it: unpin or remove these files first") == removed(
        story
    )

    story.log.given(subjects.node(here), FilesRetired(files="f" * 64))
    story.log.given(subjects.node(other), Removed(why="gone"))
    assert Fulfilled(result={"secret": "key"}) == removed(story)


def test_a_deleted_model_names_nothing(story: Story) -> None:
    put(story)
    accept(story, KEYED)
    story.log.given(subjects.model(MODEL), Deleted())
    assert isinstance(removed(story), Fulfilled)


def test_a_copy_is_due_for_the_node_alone_whose_assignment_names_the_secret(story: Story) -> None:
    here, _ = story.nodes(2)
    place(story, here)
    assert {} == copies_due(story.state)
    put(story, "another")
    assert {} == copies_due(story.state)
    version = put(story)
    assert isinstance(version, Fulfilled)
    assert {(here, "key"): int(version.result["version"])} == copies_due(story.state)
    later = put(story)
    assert isinstance(later, Fulfilled)
    assert {(here, "key"): int(later.result["version"])} == copies_due(story.state)


def test_no_copy_is_due_for_a_node_that_is_out(story: Story) -> None:
    (here,) = story.nodes(1)
    place(story, here)
    put(story)
    assert copies_due(story.state)
    story.log.given(subjects.node(here), Removed(why="gone"))
    assert {} == copies_due(story.state)

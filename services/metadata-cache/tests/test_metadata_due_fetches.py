"""What is fetched, from whom, and when it is tried again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_contracts import subjects
from weft_contracts.commit import Commit
from weft_contracts.facts.artifact import Refused, Verified
from weft_contracts.facts.model import Deleted
from weft_contracts.facts.node import Healthy, WentOffline
from weft_contracts.facts.run import Loading, Stopped
from weft_contracts.facts.source import HfSource, SourceFile
from weft_contracts.facts.values import MetadataFile, ModelSpec
from weft_contracts.ids import Incarnation, NodeId, ReplicaId, artifact_id
from weft_metadata_cache.domain.due_fetches import Fetch, Limits, State, due_fetches
from weft_testing import HandLog

from .offers import CAUSE, MODEL, file, mesh, model, node, placed, ready

LIMITS = Limits(most_bytes=1000, tries=3, pause=30)
TOKENIZER, CONFIG = file(b"tokens"), file(b"{}", "config.json")


class Story:
    def __init__(self) -> None:
        self.state = State()
        self.log = HandLog(self.state.apply)

    def happen(self, *commits: Commit) -> None:
        for commit in commits:
            self.log.given(commit.aggregate, *commit.facts, cause=commit.cause)

    def due(self) -> list[Fetch]:
        return due_fetches(self.state, self.log.now, LIMITS)

    def names(self) -> list[tuple[str, str]]:
        return [(fetch.file.name, fetch.node) for fetch in self.due()]

    def say(self, fact: Verified | Refused) -> None:
        artifact = subjects.artifact(artifact_id(fact.model, fact.revision, fact.file.name))
        self.log.given(artifact, fact, cause=CAUSE)

    def verify(self, file: MetadataFile) -> None:
        self.say(Verified(model=MODEL, revision=1, file=file))

    def refuse(self, file: MetadataFile, node: int) -> None:
        self.say(Refused(model=MODEL, revision=1, file=file, node=NodeId(f"n-{node}"), reason="no"))


@pytest.fixture
def story() -> Story:
    return Story()


def test_a_ready_replicas_files_are_fetched_from_its_nodes_registered_address(story: Story) -> None:
    story.happen(*mesh([1234], TOKENIZER, CONFIG))

    first, second = sorted(story.due(), key=lambda fetch: fetch.file.name)

    assert (CONFIG, TOKENIZER) == (first.file, second.file)
    assert ("127.0.0.1", 1234, "m-1-1") == (first.host, first.port, first.replica)
    assert story.log.commits[-1].event_id == first.cause.causation_id
    assert (0, None) == (first.sequence, first.fault)


def test_a_file_that_several_replicas_have_is_fetched_once(story: Story) -> None:
    story.happen(*mesh([1, 2, 3], TOKENIZER))
    assert [("tokenizer.json", "n-1")] == story.names()

    story.verify(TOKENIZER)

    assert [] == story.due()


def test_nothing_is_fetched_from_a_replica_that_is_not_ready_or_not_wanted(story: Story) -> None:
    story.happen(model(1), node(1, 1), *placed(1))
    assert [] == story.due()
    story.happen(ready(1, TOKENIZER))

    story.log.given(subjects.model(MODEL), Deleted())

    assert [] == story.due()


@pytest.mark.parametrize(
    "then", [Stopped(epoch=1, why="exited"), Loading(epoch=1, incarnation=Incarnation("i-2"))], ids=["ended", "starts"]
)
def test_nothing_is_fetched_from_a_run_that_has_ended_or_starts_again(story: Story, then: Stopped | Loading) -> None:
    story.happen(*mesh([1], TOKENIZER))

    story.log.given(subjects.run(NodeId("n-1"), ReplicaId("m-1-1")), then)

    assert [] == story.due()


def test_a_replica_whose_files_are_all_verified_is_not_looked_at_again(story: Story) -> None:
    story.happen(*mesh([1], TOKENIZER))
    story.verify(TOKENIZER)

    story.due()

    assert {} == story.state.dirty


def test_what_is_verified_of_a_model_that_the_log_does_not_know_is_kept(story: Story) -> None:
    story.verify(TOKENIZER)

    assert TOKENIZER == story.state.artifacts[artifact_id(MODEL, 1, TOKENIZER.name)].verified


@pytest.mark.parametrize("size", [0, LIMITS.most_bytes])
def test_an_empty_file_and_the_largest_that_is_allowed_are_fetched(story: Story, size: int) -> None:
    story.happen(*mesh([1], MetadataFile(name="a", size=size, blake3="a" * 64)))

    (fetch,) = story.due()

    assert fetch.fault is None


def test_an_offline_node_is_not_asked_until_it_returns(story: Story) -> None:
    story.happen(*mesh([1], TOKENIZER))
    story.log.given(subjects.node(NodeId("n-1")), WentOffline(silent_for=7))
    assert [] == story.due()
    assert {} == story.state.dirty

    story.log.given(subjects.node(NodeId("n-1")), Healthy())
    story.happen(ready(1, TOKENIZER))

    assert [("tokenizer.json", "n-1")] == story.names()


def test_after_a_refusal_another_node_is_asked_at_once_and_the_same_after_a_pause(story: Story) -> None:
    story.happen(*mesh([1, 2], TOKENIZER))

    story.refuse(TOKENIZER, 1)
    assert [("tokenizer.json", "n-2")] == story.names()
    story.refuse(TOKENIZER, 2)
    assert [] == story.names()
    story.log.now += 30

    assert [("tokenizer.json", "n-1")] == story.names()


def test_each_further_refusal_doubles_the_pause_and_there_is_an_end(story: Story) -> None:
    story.happen(*mesh([1], TOKENIZER))
    pauses: list[int] = []
    for _ in range(LIMITS.tries):
        waited = 0
        while not story.due():
            story.log.now += 10
            waited += 10
        pauses.append(waited)
        story.refuse(TOKENIZER, 1)
    story.log.now += 100_000

    assert [0, 30, 60] == pauses
    assert [] == story.due()


def test_a_run_that_becomes_ready_again_is_asked_again(story: Story) -> None:
    story.happen(*mesh([1], TOKENIZER))
    for _ in range(LIMITS.tries):
        story.refuse(TOKENIZER, 1)
    assert [] == story.due()

    story.happen(ready(1, TOKENIZER))

    assert [("tokenizer.json", "n-1")] == story.names()


@pytest.mark.parametrize(
    ("registered", "words"),
    [
        (MetadataFile(name="a", size=1, blake3="invalid"), "64 hexadecimal digits"),
        (MetadataFile(name="a", size=1, blake3="blake3:" + "a" * 64), "64 hexadecimal digits"),
        (MetadataFile(name="a", size=1, blake3="A" * 64), "64 hexadecimal digits"),
        (MetadataFile(name="a", size=1001, blake3="a" * 64), "1001 bytes, 1000 are allowed"),
        (MetadataFile(name="../etc/passwd", size=1, blake3="a" * 64), "is not one of a file"),
        (MetadataFile(name="..", size=1, blake3="a" * 64), "is not one of a file"),
        (MetadataFile(name="..%2f..%2fetc%2fpasswd", size=1, blake3="a" * 64), "is not one of a file"),
        (MetadataFile(name="", size=1, blake3="a" * 64), "is not one of a file"),
    ],
)
def test_a_registration_that_can_not_be_right_is_refused_once_and_never_fetched(
    story: Story, registered: MetadataFile, words: str
) -> None:
    story.happen(*mesh([1], registered))
    (fetch,) = story.due()
    assert fetch.fault is not None
    assert words in fetch.fault

    story.refuse(registered, 1)
    story.log.now += 100_000

    assert [] == story.due()


def test_what_a_node_does_not_offer_itself_is_to_come_from_the_models_source(story: Story) -> None:
    listed = SourceFile(name="tokenizer.json", size=TOKENIZER.size)
    spec = ModelSpec(source=HfSource(repository="o/m", revision="c"), engine="vllm", files=(listed,))
    story.happen(model(1, spec), node(1, 0), *placed(1), ready(1, TOKENIZER, CONFIG, self_hosted=False))

    config, tokenizer = sorted(story.due(), key=lambda fetch: fetch.file.name)

    assert (False, ("hf:o/m@c#tokenizer.json",), None) == (
        tokenizer.self_hosted,
        tokenizer.elsewhere,
        tokenizer.fault,
    )
    assert config.fault is not None
    assert config.fault.startswith("config.json is not offered by its node")


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_a_node_without_a_file_server_is_not_asked(story: Story, port: int) -> None:
    story.happen(*mesh([port], TOKENIZER))

    (fetch,) = story.due()

    assert f"node 1 has no file server: its registered port is {port}" == fetch.fault


@pytest.mark.parametrize(("letters", "named"), [(4096 - 64, True), (4096 - 64 + 1, False)])
def test_a_registration_too_long_for_an_event_is_passed_over(story: Story, letters: int, named: bool) -> None:
    long = MetadataFile(name="a" * letters, size=1, blake3="a" * 64)
    story.happen(*mesh([1], long, CONFIG))

    assert {CONFIG.name, *([long.name] if named else [])} == {name for name, _ in story.names()}


def test_nodes_that_hold_different_files_under_one_name_are_told_so(story: Story) -> None:
    story.happen(*mesh([1], TOKENIZER))
    story.verify(TOKENIZER)
    other = file(b"others")
    story.happen(node(2, 2), *mesh([1, 2], TOKENIZER)[0:1], *placed(2), ready(2, other))

    (fetch,) = story.due()

    assert "verified with another content" in str(fetch.fault)
    story.refuse(other, 2)
    assert [] == story.due()
    assert TOKENIZER == story.state.artifacts[fetch.id].verified


FILES = (TOKENIZER, CONFIG, file(b"others"))


@given(st.lists(st.tuples(st.sampled_from(("ready", "verify", "refuse", "time")), st.integers(0, 5))))
def test_what_is_wanted_never_depends_on_what_was_looked_at_before(events: list[tuple[str, int]]) -> None:
    story = Story()
    story.happen(*mesh([1, 2], TOKENIZER))
    for what, which in events:
        offered = FILES[which % len(FILES)]
        match what:
            case "ready":
                story.happen(ready(1 + which % 2, offered))
            case "verify":
                story.verify(offered)
            case "refuse":
                story.refuse(offered, 1 + which % 2)
            case _:
                story.log.now += 10 * which
        story.due()

    again = State()
    for commit in story.log.commits:
        again.apply(commit)

    assert story.state == again
    assert story.due() == due_fetches(again, story.log.now, LIMITS)

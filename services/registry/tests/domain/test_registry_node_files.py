"""Which nodes are to have a model's files ahead of need, which keep them, and which are to remove them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_contracts import subjects
from weft_contracts.digest import files_digest
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.machine import FilesCame, FilesFailed, FilesGone, Reported
from weft_contracts.facts.model import Deleted, Scaled, SpecAccepted
from weft_contracts.facts.node import Cordoned, FilesRetired, FilesWanted
from weft_contracts.facts.request import (
    FilesFetchRequested,
    FilesPinRequested,
    FilesRemovalRequested,
    FilesUnpinRequested,
    Fulfilled,
    Rejected,
)
from weft_contracts.facts.source import HfSource, SimulatedSource, SourceFile
from weft_contracts.facts.values import Hardware, ModelSpec
from weft_contracts.ids import ModelId, NodeId
from weft_fleet import NodeView
from weft_registry.domain import node_files

from .registry_story import TOY, Story, assigned

GIB = 1 << 30
MODEL = ModelId("m-toy")
FILE = SourceFile(name="m.gguf", size=10 * GIB, checksum=f"sha256:{'0' * 64}")
SOURCE = HfSource(repository="o/r", revision="c" * 40)
SPEC = ModelSpec(source=SOURCE, engine="llama.cpp", files=(FILE,))
FILES = files_digest(SPEC)
WANTED = FilesWanted(files=FILES, source=SOURCE, listed=SPEC.files, bytes=10 * GIB, model_name="toy")
KEPT, REMOVED = FilesRetired(files=FILES), FilesRetired(files=FILES, remove=True)


class Mesh:
    """So many nodes, each with so much disk free, and a model that is fetched from a hub."""

    def __init__(self, *free: int, spec: ModelSpec = SPEC) -> None:
        self.story = Story()
        self.ids = self.story.nodes(len(free))
        accepted = SpecAccepted(name="toy", revision=1, spec=spec, digest="d")
        self.story.log.given(subjects.model(MODEL), accepted, Scaled(revision=1, add=(TOY,), why="1 wanted"))
        for id, bytes in zip(self.ids, free, strict=True):
            hardware = Hardware(cpus=2, memory=GIB, disk_free=bytes)
            self.machine(id, Reported(hardware=hardware, backends=(), builtins=(), agent_version="1"))

    def machine(self, id: NodeId, fact: Fact) -> None:
        self.story.log.given(subjects.machine(id), fact)
        self.story.settle()

    def came(self, *ids: NodeId) -> None:
        for id in ids:
            self.machine(id, FilesCame(files=FILES, bytes=10 * GIB))

    def view(self, id: NodeId) -> NodeView:
        return self.story.state.fleet.nodes[id]

    def said(self, id: NodeId) -> list[Fact]:
        """What the registry said of a node's files."""
        return [f for f in self.story.log.facts(subjects.node(id)) if isinstance(f, FilesWanted | FilesRetired)]

    def told(self) -> list[NodeId]:
        """Nodes that are to have the files."""
        return [id for id in self.ids if FILES in self.view(id).file_wishes.wanted]

    def ask(self, fact: Fact) -> Fulfilled | Rejected:
        outcome = self.story.answered(self.story.ask(fact))
        assert isinstance(outcome, Fulfilled | Rejected)
        return outcome

    def fetch(self, *nodes: NodeId, count: int = 0, model: ModelId = MODEL) -> Fulfilled | Rejected:
        return self.ask(FilesFetchRequested(model=model, nodes=nodes, count=count))


def test_files_are_fetched_ahead_on_the_nodes_that_are_named():
    mesh = Mesh(20 * GIB, 20 * GIB)
    done = mesh.fetch(mesh.ids[1])
    assert isinstance(done, Fulfilled)
    assert {"files": FILES, "model_name": "toy", "nodes": mesh.view(mesh.ids[1]).name} == done.result
    assert [[], [WANTED]] == [mesh.said(id) for id in mesh.ids]
    assert isinstance(mesh.fetch(mesh.ids[1]), Fulfilled)
    assert [WANTED] == mesh.said(mesh.ids[1])


def test_a_node_that_failed_to_fetch_is_asked_anew():
    mesh = Mesh(20 * GIB)
    mesh.fetch(*mesh.ids)
    mesh.machine(mesh.ids[0], FilesFailed(files=FILES, reason="the hub is away"))
    assert isinstance(mesh.fetch(*mesh.ids), Fulfilled)
    assert [WANTED, WANTED] == mesh.said(mesh.ids[0])
    assert {} == mesh.view(mesh.ids[0]).file_wishes.faults


@given(free=st.lists(st.integers(0, 30), min_size=1, max_size=6), there=st.sets(st.integers(0, 5)), data=st.data())
def test_of_many_nodes_those_that_lack_the_files_and_have_most_room_fetch_them(
    free: list[int], there: set[int], data: st.DataObject
):
    mesh = Mesh(*(each * GIB for each in free))
    has = {number for number in there if number < len(free)}
    mesh.came(*(mesh.ids[number] for number in has))
    fitting = [number for number, each in enumerate(free) if number not in has and each * GIB >= 11.5 * GIB]
    count = data.draw(st.integers(1, len(free)))
    outcome = mesh.fetch(count=count)
    if count > len(fitting):
        assert isinstance(outcome, Rejected)
        assert outcome.reason.startswith(f"toy can be fetched on {len(fitting)} more nodes and not on {count}")
        assert [] == mesh.told()
        return
    by_room = sorted(fitting, key=lambda number: (-free[number], mesh.ids[number]))
    assert {mesh.ids[number] for number in by_room[:count]} == set(mesh.told())


def test_what_a_node_is_to_fetch_already_is_not_free_for_more():
    # given a node with room for two models and a little less, and one with room for one
    mesh = Mesh(22 * GIB - 1, 12 * GIB)
    large, small = mesh.ids
    other = WANTED.model_copy(update={"files": "f-other"})
    # when the first is to fetch another model's files
    mesh.story.log.given(subjects.node(large), other)
    # then it has no room for these, and says why
    refused = mesh.fetch(large)
    assert isinstance(refused, Rejected)
    assert "and has 22.00 GiB, 10.50 GiB of it for files that it is to fetch" in refused.reason
    # and of one node the other is chosen
    assert isinstance(mesh.fetch(count=1), Fulfilled)
    assert [small] == mesh.told()
    # until the other model is wanted no more
    mesh.story.log.given(subjects.node(large), FilesRetired(files="f-other"))
    assert isinstance(mesh.fetch(large), Fulfilled)


def test_of_nodes_that_fit_the_one_with_most_room_that_is_promised_to_nobody_is_chosen():
    mesh = Mesh(30 * GIB, 25 * GIB)
    mesh.story.log.given(subjects.node(mesh.ids[0]), WANTED.model_copy(update={"files": "f-other"}))
    mesh.fetch(count=1)
    assert [mesh.ids[1]] == mesh.told()


def test_a_node_that_takes_no_replicas_is_not_chosen():
    mesh = Mesh(20 * GIB, 30 * GIB)
    mesh.story.log.given(subjects.node(mesh.ids[1]), Cordoned())
    mesh.fetch(count=1)
    assert [mesh.ids[0]] == mesh.told()


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (ModelSpec(source=SimulatedSource(), engine="simulated"), "nothing is fetched of toy: simulated: lies on"),
        (SPEC.model_copy(update={"files": ()}), "toy names no files: deploy it again"),
    ],
)
def test_what_can_not_be_fetched_is_refused_with_the_reason(spec: ModelSpec, said: str):
    mesh = Mesh(20 * GIB, spec=spec)
    refused = mesh.fetch(*mesh.ids)
    assert isinstance(refused, Rejected)
    assert (409, True) == (refused.status, refused.reason.startswith(said))


def test_nobody_fetches_onto_too_small_a_disk_an_unknown_node_or_for_a_model_that_is_gone():
    mesh = Mesh(11 * GIB)
    small, nobody = mesh.fetch(*mesh.ids), mesh.fetch(NodeId("n-x"))
    neither = mesh.fetch()
    mesh.story.log.given(subjects.model(MODEL), Deleted())
    gone = mesh.fetch(*mesh.ids)
    outcomes = [(each.status, each.reason) for each in (small, nobody, neither, gone) if isinstance(each, Rejected)]
    assert [409, 404, 400, 404] == [status for status, _ in outcomes]
    assert "it needs 11.50 GiB of disk free for 10.00 GiB of files and has 11.00 GiB" in outcomes[0][1]
    assert [] == mesh.told()


def test_a_node_is_to_have_so_many_models_and_no_more(monkeypatch: pytest.MonkeyPatch):
    mesh = Mesh(20 * GIB)
    monkeypatch.setattr(node_files, "MOST_WANTED", 0)
    refused = mesh.fetch(*mesh.ids)
    assert isinstance(refused, Rejected)
    assert "the files of 0 models already" in refused.reason
    mesh.came(*mesh.ids)
    mesh.story.log.given(subjects.node(mesh.ids[0]), assigned(mesh.ids[0], spec=SPEC))
    full = mesh.ask(FilesPinRequested(files=FILES))
    assert isinstance(full, Rejected)
    assert "keeps the files of 0 models already" in full.reason


def test_who_says_to_have_files_that_nothing_told_it_to_have_is_not_chosen_to_keep_them():
    mesh = Mesh(20 * GIB, 20 * GIB)
    mesh.came(*mesh.ids)
    mesh.story.log.given(subjects.node(mesh.ids[0]), assigned(mesh.ids[0], spec=SPEC))
    assert isinstance(mesh.ask(FilesPinRequested(files=FILES)), Fulfilled)
    assert [[WANTED], []] == [mesh.said(id) for id in mesh.ids]
    # unless an admin names it
    assert isinstance(mesh.ask(FilesPinRequested(files=FILES, nodes=(mesh.ids[1],))), Fulfilled)
    assert [WANTED] == mesh.said(mesh.ids[1])


def test_files_are_pinned_where_they_lie_and_unpinned():
    mesh = Mesh(20 * GIB, 20 * GIB)
    mesh.came(mesh.ids[0])
    mesh.story.log.given(subjects.node(mesh.ids[0]), assigned(mesh.ids[0], spec=SPEC))
    assert isinstance(mesh.ask(FilesPinRequested(files=FILES)), Fulfilled)
    assert [[WANTED], []] == [mesh.said(id) for id in mesh.ids]
    lacking = mesh.ask(FilesPinRequested(files=FILES, nodes=(mesh.ids[1],)))
    assert isinstance(lacking, Rejected)
    assert "lacks the files" in lacking.reason
    assert isinstance(mesh.ask(FilesUnpinRequested(files=FILES)), Fulfilled)
    assert [WANTED, KEPT] == mesh.said(mesh.ids[0])
    assert {FILES: False} == mesh.view(mesh.ids[0]).file_wishes.retired
    assert isinstance(mesh.ask(FilesUnpinRequested(files=FILES)), Fulfilled)
    assert [WANTED, KEPT] == mesh.said(mesh.ids[0])


def test_files_of_no_model_are_not_pinned_and_can_be_removed():
    mesh = Mesh(20 * GIB)
    mesh.story.log.given(subjects.node(mesh.ids[0]), assigned(mesh.ids[0], spec=SPEC))
    mesh.came(*mesh.ids)
    mesh.story.log.given(subjects.model(MODEL), Deleted())
    pinned = mesh.ask(FilesPinRequested(files=FILES))
    assert isinstance(pinned, Rejected)
    assert f"no model that is deployed has the files {FILES}: deploy it before" == pinned.reason
    assert isinstance(mesh.ask(FilesRemovalRequested(files=FILES)), Fulfilled)
    assert [REMOVED] == mesh.said(mesh.ids[0])


def test_files_in_use_are_to_go_too_and_the_answer_says_where_they_are_used():
    mesh = Mesh(20 * GIB, 20 * GIB)
    mesh.came(*mesh.ids)
    mesh.story.log.given(subjects.node(mesh.ids[0]), assigned(mesh.ids[0], spec=SPEC))
    done = mesh.ask(FilesRemovalRequested(files=FILES))
    assert isinstance(done, Fulfilled)
    assert mesh.view(mesh.ids[0]).name == done.result["in_use"]
    assert [[REMOVED], [REMOVED]] == [mesh.said(id) for id in mesh.ids]
    again = mesh.ask(FilesRemovalRequested(files=FILES))
    assert isinstance(again, Fulfilled)
    assert [REMOVED] == mesh.said(mesh.ids[0])
    mesh.machine(mesh.ids[1], FilesGone(files=FILES))
    assert {} == mesh.view(mesh.ids[1]).file_wishes.retired
    missing = mesh.ask(FilesRemovalRequested(files=FILES, nodes=(mesh.ids[1],)))
    assert isinstance(missing, Rejected)
    assert 404 == missing.status


def test_what_is_on_its_way_is_called_off_by_a_removal():
    mesh = Mesh(20 * GIB)
    mesh.fetch(*mesh.ids)
    assert isinstance(mesh.ask(FilesRemovalRequested(files=FILES)), Fulfilled)
    wishes = mesh.view(mesh.ids[0]).file_wishes
    assert ({}, {}) == (wishes.wanted, wishes.retired)


def test_files_that_lie_nowhere_are_neither_kept_nor_removed():
    mesh = Mesh(20 * GIB)
    asked = FilesPinRequested(files=FILES), FilesUnpinRequested(files=FILES), FilesRemovalRequested(files=FILES)
    refused = [mesh.ask(each) for each in asked]
    assert [404, 404, 404] == [each.status for each in refused if isinstance(each, Rejected)]


def test_the_fleet_remembers_no_lists_of_wanted_files():
    mesh = Mesh(20 * GIB)
    mesh.fetch(*mesh.ids)
    (wanted,) = mesh.view(mesh.ids[0]).file_wishes.wanted.values()
    assert WANTED.model_copy(update={"listed": ()}) == wanted

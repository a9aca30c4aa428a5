"""Where a file goes that is sent: to the first node whose replica waits for it, unless the mesh has it."""

import pytest
from weft_contracts.digest import files_digest
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.machine import FilesCame
from weft_contracts.facts.model import Deleted, Scaled, SpecAccepted, Unservable
from weft_contracts.facts.node import Approved, Assigned, FilesWanted, Healthy, Joined, WentOffline
from weft_contracts.facts.replica import Placed, Unplaceable
from weft_contracts.facts.run import Fetching, Installing, Loading
from weft_contracts.facts.source import SourceFile, UploadSource
from weft_contracts.facts.values import Addresses, DeviceClaim, Member, ModelSpec, Receipt
from weft_contracts.ids import Incarnation, ModelId, NodeId, ReplicaId, TokenId, replica_id
from weft_contracts.subjects import machine, model, node, replica, run
from weft_fleet import Fleet
from weft_gateway.domain.refused import Refused
from weft_gateway.domain.uploads import destination
from weft_testing import HandLog

FILE = SourceFile(name="m.gguf", size=200, checksum="blake3:" + "a" * 64)
SOURCE = UploadSource(name="m.gguf")
SPEC = ModelSpec(source=SOURCE, engine="llama.cpp", files=(FILE,), max_replicas=2)
FILES = files_digest(SPEC)
MODEL = ModelId("m-aaaaaaaaaaaaaaaa")
ONE, TWO = NodeId("n-aaaaaaaaaaaaaaaa"), NodeId("n-bbbbbbbbbbbbbbbb")
FIRST, SECOND = replica_id(MODEL, 1), replica_id(MODEL, 2)
RECEIPT = Receipt(
    position=1, policy="p", policy_digest="d", seed=0, trigger="t", decided_at=0.0, refusals={}, candidates=()
)


class Mesh:
    """Two nodes, and a model whose files are to be sent."""

    def __init__(self) -> None:
        self.log, self.fleet = HandLog(), Fleet()
        self.log.listen(self.fleet.apply)
        for name, id in (("node-1", ONE), ("node-2", TWO)):
            addresses = Addresses(host="127.0.0.1", http_port=1)
            joined = Joined(name=name, public_key="U", token=TokenId("t-x"), addresses=addresses)
            self.log.given(node(id), joined, Approved(by="t-x"), Healthy())
        self.log.given(model(MODEL), SpecAccepted(name="sent", revision=1, digest="d", spec=SPEC))
        self.log.given(model(MODEL), Scaled(revision=1, add=(FIRST, SECOND), why="wanted"))

    def place(self, id: ReplicaId, on: NodeId, *said: Fact) -> None:
        member = Member(node=on, rank=0, devices=(DeviceClaim(index=0, bytes=1),))
        self.log.given(replica(id), Placed(model=MODEL, revision=1, epoch=1, members=(member,), receipt=RECEIPT))
        assigned = Assigned(
            replica=id, model=MODEL, model_name="sent", revision=1, digest="d", epoch=1, members=(member,), spec=SPEC
        )
        self.log.given(node(on), assigned)
        for fact in said:
            self.log.given(run(on, id), fact)

    def to(self) -> NodeId | None:
        found = destination(self.fleet, FILES, "m.gguf").node
        return None if found is None else found.id


FETCHES = Fetching(epoch=1, bytes=200)


@pytest.fixture
def mesh() -> Mesh:
    return Mesh()


def refused(mesh: Mesh, files: str = FILES, name: str = "m.gguf") -> tuple[int, str]:
    with pytest.raises(Refused) as found:
        destination(mesh.fleet, files, name)
    assert (503 == found.value.status) == ("retry-after" in found.value.headers)
    return found.value.status, found.value.sentence


def test_the_node_that_was_assigned_first_of_those_that_wait_gets_it(mesh: Mesh) -> None:
    mesh.place(FIRST, TWO, FETCHES)
    mesh.place(SECOND, ONE, FETCHES)
    assert TWO == mesh.to()
    assert FILE == destination(mesh.fleet, FILES, "m.gguf").file


def test_one_that_does_not_wait_yet_is_passed_over(mesh: Mesh) -> None:
    mesh.place(FIRST, TWO, Installing(epoch=1, engine="llama.cpp"))
    mesh.place(SECOND, ONE, FETCHES)
    assert ONE == mesh.to()


def test_one_that_is_away_is_passed_over(mesh: Mesh) -> None:
    mesh.place(FIRST, TWO, FETCHES)
    mesh.place(SECOND, ONE, FETCHES)
    mesh.log.given(node(TWO), WentOffline(silent_for=20.0))
    assert ONE == mesh.to()


def test_nothing_is_sent_where_a_node_has_the_files_or_loads_them(mesh: Mesh) -> None:
    mesh.place(SECOND, ONE, FETCHES)
    mesh.place(FIRST, TWO, Loading(epoch=1, incarnation=Incarnation("i-1")))
    assert mesh.to() is None


def test_what_an_earlier_model_brought_is_not_sent_again(mesh: Mesh) -> None:
    mesh.log.given(node(TWO), FilesWanted(files=FILES, source=SOURCE, listed=SPEC.files, bytes=200))
    mesh.log.given(machine(TWO), FilesCame(files=FILES, bytes=200))
    assert mesh.to() is None  # also where nothing was placed yet
    # but of a node that is away nobody has them
    mesh.log.given(node(TWO), WentOffline(silent_for=20.0))
    assert 503 == refused(mesh)[0]


def test_a_replica_that_waits_gets_it_whoever_says_to_have_it(mesh: Mesh) -> None:
    mesh.log.given(machine(TWO), FilesCame(files=FILES, bytes=200))
    assert 503 == refused(mesh)[0]  # nothing was placed yet, and the log tells not why that node would have it
    mesh.place(FIRST, ONE, FETCHES)
    assert ONE == mesh.to()
    mesh.log.given(node(TWO), FilesWanted(files=FILES, source=SOURCE, listed=SPEC.files, bytes=200))
    assert ONE == mesh.to()


def test_until_a_node_waits_it_is_said_what_is_waited_for(mesh: Mesh) -> None:
    status, sentence = refused(mesh)
    assert (503, True) == (status, sentence.startswith("No node waits for these files yet.")), sentence
    mesh.place(FIRST, ONE, Installing(epoch=1, engine="llama.cpp"))
    assert "on node node-1 is installing" in refused(mesh)[1]


def test_a_replica_without_a_place_says_why(mesh: Mesh) -> None:
    for id in (FIRST, SECOND):
        reason = "node-1: 3 GiB of disk are short"
        mesh.log.given(replica(id), Unplaceable(model=MODEL, revision=1, reason=reason, receipt=RECEIPT))
    assert (409, "Model 'sent' has no place: node-1: 3 GiB of disk are short") == refused(mesh)


def test_a_model_that_was_given_up_says_why(mesh: Mesh) -> None:
    mesh.log.given(model(MODEL), Unservable(revision=1, reason="m.gguf was not sent"))
    status, sentence = refused(mesh)
    assert (409, True) == (status, "m.gguf was not sent" in sentence)


def test_what_no_model_lists_is_not_found(mesh: Mesh) -> None:
    assert 404 == refused(mesh, files="0" * 16)[0]
    assert 404 == refused(mesh, name="n.gguf")[0]
    mesh.log.given(model(MODEL), Deleted())
    assert 404 == refused(mesh)[0]

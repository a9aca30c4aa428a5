"""What is kept of replicas' progress from look to look says what one made anew would."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from weft_contracts.facts.model import Scaled, SpecAccepted
from weft_contracts.facts.node import Assigned, Joined, Unassigned
from weft_contracts.facts.replica import Placed
from weft_contracts.facts.run import Fetching, Installing, Loading, Ready, Stopped
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import Addresses, DeviceClaim, Member, ModelSpec, Receipt
from weft_contracts.ids import Incarnation, ModelId, NodeId, ReplicaId, TokenId, replica_id
from weft_contracts.signals import FetchSaid, InstallSaid, LoadSaid, MemorySaid, NodeProgress
from weft_contracts.subjects import model, node, replica, run
from weft_gateway.domain.progress_board import COUNTS_S, ProgressBoard
from weft_gateway.inbound.admin.rendered_progress import REPLICAS_SHOWN, RenderedProgress
from weft_gateway.projections.directory import Directory
from weft_testing import HandLog

SPEC = ModelSpec(source=SimulatedSource(), engine="simulated")
RECEIPT = Receipt(
    position=1, policy="p", policy_digest="d", seed=0, trigger="t", decided_at=0.0, refusals={}, candidates=()
)
OF, NODES = ModelId("m-1"), (NodeId("n-1"), NodeId("n-2"))
IDS = tuple(replica_id(OF, number) for number in (1, 2))
INSTALL = InstallSaid(engine="simulated", version="1", vendor="cpu", phase="resolving")


def assigned(id: ReplicaId, *on: NodeId) -> list[tuple[Any, Any]]:
    members = tuple(
        Member(node=each, rank=rank, devices=(DeviceClaim(index=0, bytes=7),)) for rank, each in enumerate(on)
    )
    given = Assigned(replica=id, model=OF, model_name="m", revision=1, digest="d", epoch=1, members=members, spec=SPEC)
    return [
        (model(OF), Scaled(revision=1, add=(id,), why="w")),
        (replica(id), Placed(model=OF, revision=1, epoch=1, members=members, receipt=RECEIPT)),
        *((node(each), given) for each in on),
    ]


def grown() -> tuple[Directory, HandLog]:
    """Two nodes, a replica on the first and one on both."""
    directory, log = Directory(), HandLog()
    addresses = Addresses(host="127.0.0.1", http_port=1)
    steps: list[tuple[Any, Any]] = [
        *((node(id), Joined(name=id, public_key="U", token=TokenId("t"), addresses=addresses)) for id in NODES),
        (model(OF), SpecAccepted(name="m", revision=1, digest="d", spec=SPEC)),
        *assigned(IDS[0], NODES[0]),
        *assigned(IDS[1], *NODES),
    ]
    for aggregate, fact in steps:
        directory.fold([log.given(aggregate, fact)])
    return directory, log


def looked(rendered: RenderedProgress) -> dict[str, Any]:
    whole: dict[str, Any] = json.loads(rendered.whole())
    assert whole == json.loads(rendered.page())
    return whole


FACTS = ("installing", "fetching", "loading", "ready", "stopped", "unassigned")
SAID = ("installs", "fetches", "loads", "memory", "nothing")


def fact_of(what: str, on: NodeId, id: ReplicaId) -> tuple[Any, Any]:
    """A fact about a replica on a node, with its aggregate."""
    facts: dict[str, Any] = {
        "installing": Installing(epoch=1, engine="simulated"),
        "fetching": Fetching(epoch=1, bytes=2),
        "loading": Loading(epoch=1, incarnation=Incarnation("i")),
        "ready": Ready(epoch=1, incarnation=Incarnation("i"), port=1, engine="simulated", engine_version="1"),
        "stopped": Stopped(epoch=1, why="exited"),
        "unassigned": Unassigned(replica=id, deadline_s=1, why="w"),
    }
    return (node(on) if what == "unassigned" else run(on, id)), facts[what]


def said_of(what: str, on: NodeId, id: ReplicaId) -> NodeProgress:
    """What a node says of a replica."""
    return NodeProgress(
        node=on,
        installs=(INSTALL,) if what == "installs" else (),
        fetches=(FetchSaid(replica=id, source="s", phase="fetching"),) if what == "fetches" else (),
        loads=(LoadSaid(replica=id, taken=1, total=2, loading_s=9.0),) if what == "loads" else (),
        memory=(MemorySaid(replica=id, device=0, used=3),) if what == "memory" else (),
    )


told = st.tuples(st.sampled_from(FACTS), st.sampled_from(NODES), st.sampled_from(IDS))
signalled = st.tuples(st.sampled_from(SAID), st.sampled_from(NODES), st.sampled_from(IDS))
passed = st.floats(0, COUNTS_S)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(told, signalled, passed), max_size=15))
def test_a_kept_look_says_what_one_made_anew_would(steps: list[Any]) -> None:
    directory, log = grown()
    board, now = ProgressBoard(), 0.0
    kept = RenderedProgress(directory, board)
    for step in steps:
        if isinstance(step, float):
            now += step
            board.forget_old(now)
        elif step[0] in FACTS:
            directory.fold([log.given(*fact_of(*step))])
        else:
            board.heard(step[1], said_of(*step), now)
        assert looked(RenderedProgress(directory, board)) == looked(kept)


def test_each_node_that_a_replica_spans_counts() -> None:
    directory, log = grown()
    board = ProgressBoard()
    rendered = RenderedProgress(directory, board)
    for on in NODES:
        directory.fold([log.given(run(on, IDS[1]), Loading(epoch=1, incarnation=Incarnation("i")))])
        taken = 1 if on == NODES[0] else 90
        load = LoadSaid(replica=IDS[1], taken=taken, total=100, loading_s=9.0)
        board.heard(on, NodeProgress(node=on, loads=(load,), memory=()), 0.0)
    # then the node that is behind is told of, and every claim stands beside what is not known
    shown = looked(rendered)[IDS[1]]
    assert (NODES[0], 1) == (shown["load"]["node"], shown["load"]["taken"])
    assert [(NODES[0], 7, None), (NODES[1], 7, None)] == [
        (d["node"], d["claimed"], d["used"]) for d in shown["devices"]
    ]


def test_the_page_is_told_a_bounded_part_those_that_wait_first() -> None:
    directory, log = grown()
    many = [replica_id(OF, number) for number in range(10, 10 + REPLICAS_SHOWN)]
    for id in many:
        for aggregate, fact in assigned(id, NODES[0]):
            directory.fold([log.given(aggregate, fact)])
    last = many[-1]
    directory.fold([log.given(run(NODES[0], last), Loading(epoch=1, incarnation=Incarnation("i")))])
    board = ProgressBoard()
    held = tuple(MemorySaid(replica=id, device=0, used=1) for id in (*IDS, *many))
    load = LoadSaid(replica=last, taken=1, total=2, loading_s=9.0)
    board.heard(NODES[0], NodeProgress.model_construct(node=NODES[0], installs=(), loads=(load,), memory=held), 0.0)
    rendered = RenderedProgress(directory, board)
    page, whole = json.loads(rendered.page()), json.loads(rendered.whole())
    assert (REPLICAS_SHOWN, REPLICAS_SHOWN + 2) == (len(page), len(whole))
    assert last == next(iter(page))

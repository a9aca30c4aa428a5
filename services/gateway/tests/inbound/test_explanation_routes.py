"""Explanations over HTTP, of a log in the hand: what the log is asked, who waits for whom, and what would help."""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from weft_contracts.commit import Recorded
from weft_contracts.facts.fact import Unreadable
from weft_contracts.facts.node import Cordoned, Uncordoned
from weft_contracts.facts.replica import Placed, Unplaceable
from weft_contracts.facts.request import Fulfilled
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import ModelId, NodeId, ReplicaId
from weft_contracts.subjects import EVENTS, Aggregate, node, replica
from weft_contracts.suspects import Suspects
from weft_gateway.inbound.admin.explanations import Explanations
from weft_gateway.inbound.admin.models import Models
from weft_gateway.inbound.admin.remedy_search import ANOTHER, FITS, RemedySearch
from weft_gateway.projections.directory import Directory
from weft_gateway.projections.fleet_marks import FleetMarks
from weft_placement import BALANCED, CandidateRanking, Circumstances, NoPlace, Placement, PlannedFleet, choose
from weft_placement.decide import demand_for
from weft_placement.remedies import Question, question_of
from weft_placement.set_aside import REASON
from weft_testing.fleet_log import FleetLog

Fronts = Any
GIB = 1 << 30
SPEC = ModelSpec(source=SimulatedSource(), engine="simulated", engine_args={"memory_bytes": 2 * GIB})
ONE, TWO = ReplicaId("m-toy-1"), ReplicaId("m-toy-2")


class World:
    """A node that holds the first replica and is cordoned since, and a second one that waits."""

    def __init__(self) -> None:
        self.log, self.directory, self.known = FleetLog(), Directory(), Suspects()
        self.marks = FleetMarks(every=5, kept=2, most=6)
        self.log.listen(self.fold)
        self.whole_reads = 0
        self.read_after = 0
        self.reading, self.go_on = asyncio.Event(), asyncio.Event()
        self.go_on.set()
        self.log.node("a", 8 * GIB)
        self.log.model("toy", SPEC, replicas=2)
        self.decide(ONE)
        self.log.add(node(NodeId("n-a")), Cordoned())
        self.decide(TWO)
        own: Any = self
        lists: Any = None
        self.search = RemedySearch()
        self.suspects: tuple[Aggregate, ...] = ()
        self.routers = [
            Explanations(self.directory, own, self.search, lambda: self.suspects, self.marks).router,
            Models(self.directory, own, lists, self.search, lambda: self.suspects).router,
        ]

    def fold(self, commit: Recorded) -> None:
        """As the gateway does."""
        self.known.read(commit)
        self.directory.fold([commit])
        self.marks.folded(self.directory.fleet, lambda: self.known.marks)

    def decide(self, id: ReplicaId, set_aside: dict[str, str] | None = None) -> None:
        fleet, view = self.log.fleet, self.log.fleet.replicas[id]
        ranking = CandidateRanking(demand_for(fleet, view, BALANCED), BALANCED)
        ranking.sync(PlannedFleet(fleet))
        found = choose(fleet, view, ranking, Circumstances(1.0, 0), set_aside)
        match found:
            case Placement(members=members, receipt=receipt):
                placed = Placed(model=view.model, revision=1, epoch=1, members=members, receipt=receipt)
                self.log.add(replica(id), placed)
            case NoPlace(reason=reason, receipt=receipt):
                self.log.add(replica(id), Unplaceable(model=view.model, revision=1, reason=reason, receipt=receipt))

    async def read(self, *filters: str, after: int = 0, upto: int | None = None) -> AsyncIterator[Recorded]:
        """What a log's index gives; the whole of it as slowly as a test wants."""
        if f"{EVENTS}.>" in filters:
            self.whole_reads += 1
            self.read_after = after
            self.reading.set()
            await self.go_on.wait()
        patterns = [re.compile(re.escape(each).replace(r"\*", "[^.]+").replace(">", ".+")) for each in filters]
        for commit in list(self.log.commits):
            within = after < commit.sequence and (upto is None or commit.sequence <= upto)
            subject = commit.aggregate.subject(commit.facts[0].type)
            if within and any(pattern.fullmatch(subject) for pattern in patterns):
                yield commit

    async def ask(self, request: Any, fact: Any, *_: Any, **__: Any) -> Any:
        """The nodes' answers to a dry run, which is asked for nothing but a revision."""

        class View:
            id = "q-1"
            outcome = Fulfilled(result={"revision": "1"})

        return View


@pytest.fixture
async def world() -> World:
    return World()


async def said(fronts: Fronts, world: World, path: str, method: str = "GET", body: Any = b"") -> dict[str, Any]:
    front = await fronts.open(routers=world.routers)
    wire = await fronts.connect(front)
    wire.send(wire.request(body, path=path).replace(b"POST", method.encode(), 1))
    answer = await wire.answer()
    assert 200 == answer.status, answer.json()
    return answer.json()


async def test_who_asks_while_another_decision_is_computed_again_has_what_its_receipt_kept_and_is_told_why(
    fronts: Fronts, world: World
) -> None:
    # given an explanation that still reads the log
    world.go_on.clear()
    first = asyncio.create_task(said(fronts, world, f"/api/explanations/{TWO}"))
    await asyncio.wait_for(world.reading.wait(), 10)

    # when another one is asked for
    second = (await said(fronts, world, f"/api/explanations/{ONE}"))["replica"]

    # then it is answered at once by the receipt, and says what to do for more
    assert (False, "another one is being computed; ask again") == (second["recomputed"], second["why_not_recomputed"])
    assert ["a"] == [each["name"] for each in second["nodes"] if each["chosen"]]
    # and the first is whole, and so is the second when it asks again
    world.go_on.set()
    assert (await first)["replica"]["recomputed"]
    again = (await said(fronts, world, f"/api/explanations/{ONE}"))["replica"]
    assert (True, False, 2) == (again["recomputed"], "why_not_recomputed" in again, world.whole_reads)


async def test_a_decision_far_behind_the_logs_beginning_is_computed_again_from_the_last_place_that_was_noted(
    fronts: Fronts, world: World
) -> None:
    def with_marks(marks: FleetMarks) -> None:
        world.routers[0] = Explanations(
            world.directory, cast("Any", world), world.search, lambda: world.suspects, marks
        ).router

    # given a decision that is too far behind the log's beginning, and a place before it at which the fleet was noted
    noted = (await said(fronts, world, f"/api/explanations/{TWO}"))["replica"]
    assert noted["recomputed"]
    assert 0 < world.read_after <= noted["receipt"]["position"]
    # then only what follows that place was read, and the answer is the one that the whole log gives
    with_marks(FleetMarks())
    assert noted == (await said(fronts, world, f"/api/explanations/{TWO}"))["replica"]
    assert 0 == world.read_after

    # and without such a place its receipt tells it, and it says why
    with_marks(FleetMarks(most=6))
    kept = (await said(fronts, world, f"/api/explanations/{TWO}"))["replica"]
    assert not kept["recomputed"]
    assert "commits behind the log's beginning, and before the places at which" in kept["why_not_recomputed"]


async def test_a_replica_without_a_place_tells_the_smallest_change_that_gives_it_one(
    fronts: Fronts, world: World
) -> None:
    waits = (await said(fronts, world, f"/api/explanations/{TWO}"))["replica"]

    first = waits["remedies"][0]
    (step,) = first["steps"]
    assert ("uncordon", "uncordon a", "weft nodes uncordon a") == (step["kind"], step["what"], step["command"])
    assert ("n-a", [], {}) == (step["node"], step["replicas"], step["arguments"])
    assert ("a", 0) == (first["node"], first["alike"])
    assert "remedies_note" not in waits
    # and one that has its place tells none
    assert "remedies" not in (await said(fronts, world, f"/api/explanations/{ONE}"))["replica"]


async def test_a_dry_run_tells_of_the_replica_without_a_place_what_would_have_to_change(
    fronts: Fronts, world: World
) -> None:
    body = {"name": "big", "spec": {"source": {"kind": "simulated"}, "engine": "simulated"}}

    plan = (await said(fronts, world, "/api/models?dry_run=true", "POST", body))["plan"]

    (replica,) = plan["replicas"]
    assert ["uncordon a"] == [step["what"] for step in replica["remedies"][0]["steps"]]


async def test_a_node_that_is_set_aside_is_passed_over_by_all_that_explains(fronts: Fronts, world: World) -> None:
    # given the only node, open again, with an event that can't be read
    world.log.add(node(NodeId("n-a")), Uncordoned())
    world.suspects = (node(NodeId("n-a")),)
    body = {"name": "big", "spec": {"source": {"kind": "simulated"}, "engine": "simulated"}}
    world.log.model("late", SPEC)

    node_told = (await said(fronts, world, "/api/explanations/a"))["node"]
    next_told = (await said(fronts, world, "/api/explanations/late"))["replica"]
    (planned,) = (await said(fronts, world, "/api/models?dry_run=true", "POST", body))["plan"]["replicas"]

    assert [REASON, REASON] == [each["refusal"] for each in node_told["models"]]
    for told in (next_told, planned):
        assert [REASON] == [each["refusal"] for each in told["nodes"]]
        assert f"no node can take it; every node {REASON}" == told["outcome"]
        assert ["add"] == [step["kind"] for each in told["remedies"] for step in each["steps"]]


async def test_a_decision_that_passed_over_a_node_that_is_set_aside_says_so_when_it_is_computed_again(
    fronts: Fronts, world: World
) -> None:
    # given a node whose commit couldn't be read when a third replica was decided about
    world.log.add(node(NodeId("n-a")), Uncordoned())
    world.log.add(node(NodeId("n-a")), Unreadable(why="it is of a later version"))
    world.log.scale(ModelId("m-toy"), 1)
    world.decide(ReplicaId("m-toy-3"), {"n-a": REASON})

    told = (await said(fronts, world, "/api/explanations/m-toy-3"))["replica"]

    assert (True, [REASON]) == (told["recomputed"], [each["refusal"] for each in told["nodes"]])


async def test_one_search_goes_on_at_a_time_and_what_fits_needs_none(world: World) -> None:
    question = question_of(world.log.fleet, world.log.fleet.replicas[TWO], BALANCED, now=1.0)
    both = await asyncio.gather(world.search.of(question), world.search.of(question))
    assert [True, False] == ["remedies" in each for each in both]
    assert ANOTHER == both[1].get("remedies_note")

    fleet = FleetLog()
    fleet.node("a", 8 * GIB)
    fleet.model("toy", SPEC, replicas=1)
    fits: Question = question_of(fleet.fleet, fleet.fleet.replicas[ONE], BALANCED, now=1.0)
    assert {"remedies": [], "remedies_note": FITS} == await world.search.of(fits)

"""Where the fleet stood: the newest places stay, each as it was; what they don't have is looked for among snapshots."""

from weft_contracts.facts.node import Cordoned
from weft_contracts.ids import NodeId
from weft_contracts.subjects import node
from weft_gateway.projections.fleet_marks import FleetMark, FleetMarks
from weft_testing.fleet_log import FleetLog, refold


def a_log(*names: str) -> FleetLog:
    log = FleetLog()
    for name in names:
        log.node(name, 1 << 30)
    return log


async def test_the_newest_places_stay_and_each_is_the_fleet_as_the_log_makes_it_up_to_there() -> None:
    # given places of a log that goes on, noted every three commits, of which two stay
    log, marks = FleetLog(), FleetMarks(every=3, kept=2, most=4)
    log.listen(lambda _: marks.folded(log.fleet, list))
    for name in "abcd":
        log.node(name, 1 << 30)
    log.add(node(NodeId("n-a")), Cordoned())
    assert 13 == log.fleet.position

    # then the last one before any later position is told, and none before those that stay
    found = {position: await marks.before(position, position + 1) for position in (8, 9, 11, 12, 13)}
    assert [None, 9, 9, 12, 12] == [mark and mark.fleet.position for mark in found.values()]

    # and each is what the log makes up to there, whatever came later
    for mark in filter(None, found.values()):
        again = refold(log.commits[: mark.fleet.position])
        assert again.digest() == mark.fleet.digest()


async def test_a_fleet_that_begins_at_a_snapshot_is_noted_there() -> None:
    marks = FleetMarks(every=3, most=4)
    assert await marks.before(6, 7) is None
    marks.folded(a_log("a", "b").fleet, list)
    mark = await marks.before(6, 7)
    assert mark is not None
    assert 6 == mark.fleet.position


async def test_the_logs_beginning_serves_what_is_near_it() -> None:
    marks = FleetMarks(most=4)
    mark = await marks.before(2, 4)
    assert mark is not None
    assert (0, ()) == (mark.fleet.position, mark.suspects)
    assert await marks.before(2, 5) is None


async def test_snapshots_are_asked_for_what_was_folded_before_this_process_began_and_for_nothing_else() -> None:
    # given a process that has noted position 12, and a snapshot of position 6
    asked = list[int]()
    kept = FleetMark(a_log("a", "b").fleet, ())

    async def earlier(position: int) -> FleetMark | None:
        asked.append(position)
        return kept if position >= 6 else None

    marks = FleetMarks(earlier, every=3, most=4)
    marks.folded(a_log(*"abcd").fleet, list)

    # then what is near its own place, or the beginning, asks for none
    assert [12, 0] == [mark and mark.fleet.position for mark in (await marks.before(13, 14), await marks.before(2, 3))]
    assert [] == asked
    # and before it the snapshot serves what is near enough behind it
    assert kept is await marks.before(9, 10)
    assert [None, None] == [await marks.before(9, 11), await marks.before(5, 6)]
    assert [9, 9, 5] == asked

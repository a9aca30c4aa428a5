"""`weft explain`: how a replica's last process ended."""

from weft_cli.commands.explain import RunEnd, claims_in_words, last_end
from weft_contracts import subjects
from weft_contracts.facts import run
from weft_contracts.ids import NodeId, ReplicaId
from weft_placement.explain import NodeAnswer
from weft_testing import HandLog

NODE = NodeId("n-aaaaaaaaaaaaaaaa")


def test_the_last_end_that_nobody_asked_for_is_told_with_its_lines() -> None:
    log = HandLog()
    one = subjects.run(NODE, ReplicaId("m-x-1"))
    log.given(one, run.Stopped(epoch=1, why="exited", detail="it fell", last_lines=("a", "b")))
    log.given(subjects.run(NODE, ReplicaId("m-x-11")), run.Failed(epoch=1, reason="no", permanent=True, starts=1))
    log.given(one, run.Stopped(epoch=1, why="retired"))

    assert RunEnd("it fell", ("a", "b")) == last_end(log.commits, "m-x-1")
    assert last_end(log.commits, "m-x-2") is None

    log.given(one, run.Failed(epoch=2, reason="it fell four times", permanent=False, starts=4, last_lines=("c",)))
    assert RunEnd("it fell four times", ("c",)) == last_end(log.commits, "m-x-1")


def test_a_replica_that_lies_in_both_memories_is_told_with_its_bytes_in_each() -> None:
    gib = 1 << 30
    parted = NodeAnswer(NODE, "a", None, devices=(1,), bytes=(3 * gib,), host=2 * gib)

    assert "1: 3.0 GiB, machine: 2.0 GiB" == claims_in_words(parted)
    assert "1, 2" == claims_in_words(NodeAnswer(NODE, "a", None, devices=(1, 2), bytes=(gib, gib)))

"""`weft explain`: what it prints of the gateway's answer."""

from typing import Any

import pytest
from typer.testing import CliRunner
from weft_api import NodeAnswer, ReplicaExplanation
from weft_cli.app import app
from weft_cli.commands.explain import bounds_in_words, claims_in_words
from weft_placement import BALANCED
from weft_testing.fake_gateway import FakeGateway

GIB = 1 << 30
TAKES: NodeAnswer = {
    "node": "n-a",
    "name": "a",
    "refusal": None,
    "rung": "one device",
    "devices": [1],
    "bytes": [3 * GIB],
    "host": 0,
    "score": 0.5,
    "scores": {"idle": 1.0},
    "chosen": True,
}
REFUSES: NodeAnswer = {**TAKES, "node": "n-b", "name": "b", "refusal": "is cordoned", "chosen": False}
FOUND: ReplicaExplanation = {
    "replica": "m-1",
    "model": "toy",
    "position": 7,
    "policy": BALANCED.text,
    "outcome": "placed on a",
    "nodes": [TAKES, REFUSES],
    "receipt": {"trigger": "e-1", "seed": 9, "position": 7, "rungs": ["one device: too small"], "policy_digest": "d1"},
    "recomputed": True,
    "refusals": {},
    "last_end": {"reason": "it fell", "last_lines": ["oh", "no"]},
    "troubles": ["revision 2 of toy can't be served: no"],
}


def explained(fake: FakeGateway, ref: str, answer: dict[str, Any]) -> list[str]:
    fake.answers["GET", f"/api/explanations/{ref}"] = (200, answer)
    done = CliRunner().invoke(app, ["explain", ref, "--url", fake.url])
    assert 0 == done.exit_code, done.output
    return [" ".join(line.split()) for line in done.stdout.splitlines() if line]


def test_a_decision_is_told_with_each_nodes_answer_its_last_end_and_what_else_went_wrong(fake: FakeGateway) -> None:
    lines = explained(fake, "toy", {"kind": "replica", "replica": FOUND})
    assert [
        "m-1 of model toy: placed on a",
        "decided at log position 7, policy balanced (d1), asked for by event e-1, seed 9",
        "passed over: one device: too small",
        "NODE ANSWER DEVICES SCORE SCORES",
        "-> a one device 1 0.500 idle 1.00",
        "- b is cordoned 1 - idle 1.00",
        "its last process ended: it fell",
        "| oh",
        "| no",
        "revision 2 of toy can't be served: no",
    ] == lines


def test_a_model_without_a_replica_tells_how_it_stands_and_where_one_more_would_go(fake: FakeGateway) -> None:
    size = {"replicas": 0, "was": 2, "why": "nobody asked for 5 minutes", "at": 0.0}
    stands = {
        "state": "empty",
        "reason": "it sleeps until it is asked",
        "ready": 0,
        "wanted": 0,
        "least": 0,
        "most": 3,
        "all_nodes": False,
        "size": size,
    }
    next_one = {**FOUND, "replica": "m-9", "receipt": None, "outcome": "it would go to a", "stands": stands}

    lines = explained(fake, "toy", {"kind": "model", "replica": next_one})

    assert ["toy is empty: it sleeps until it is asked", "0 of 0 replicas ready; from 0 to 3"] == lines[:2]
    assert lines[2].startswith("sized by demand from 2 to 0 ")
    assert lines[2].endswith(" ago: nobody asked for 5 minutes")
    assert "m-9 of model toy: it would go to a" == lines[3]
    assert "its last process ended: it fell" in lines


@pytest.mark.parametrize(
    ("least", "most", "all_nodes", "words"),
    [
        (2, None, False, "at least 2"),
        (2, 2, False, "always 2"),
        (0, 3, False, "from 0 to 3"),
        (0, None, True, "one is wanted on each node that matches"),
    ],
)
def test_how_many_replicas_there_may_be_is_said(least: int, most: int | None, all_nodes: bool, words: str) -> None:
    assert words == bounds_in_words(least, most, all_nodes=all_nodes)


def test_what_would_have_to_change_is_told_with_the_commands_that_do_it(fake: FakeGateway) -> None:
    step: dict[str, Any] = {"kind": "uncordon", "node": "n-a", "replicas": [], "arguments": {}}
    uncordon = {**step, "what": "uncordon a", "command": "weft nodes uncordon a"}
    label = {**step, "what": "label b with x=y", "command": "weft nodes label b x=y"}
    context = {**step, "what": "a context of 256 tokens instead of 1024 (--context 256)", "command": ""}
    remedies = [
        {"steps": [uncordon], "node": "a", "alike": 1},
        {"steps": [label, uncordon], "node": "b", "alike": 0},
        {"steps": [context], "node": "c", "alike": 0},
    ]
    note = "7 further nodes that refuse for the same reasons weren't looked at"
    waits = {**FOUND, "remedies": remedies, "remedies_note": note, "last_end": None, "troubles": []}

    lines = explained(fake, "toy", {"kind": "replica", "replica": waits})

    assert [
        "it would have a place after any of these:",
        "- uncordon a (1 other node likewise)",
        "weft nodes uncordon a",
        "- label b with x=y, and uncordon a",
        "weft nodes label b x=y",
        "weft nodes uncordon a",
        "- a context of 256 tokens instead of 1024 (--context 256)",
        note,
    ] == lines[-8:]


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ({"remedies": []}, "nothing that was tried would give it a place"),
        ({"remedies": [], "remedies_note": "it has a place now"}, "it has a place now"),
        ({"remedies_note": "ask again"}, "what would have to change isn't computed: ask again"),
    ],
)
def test_that_nothing_would_help_or_nothing_was_computed_is_said(
    fake: FakeGateway, said: dict[str, Any], line: str
) -> None:
    waits = {**FOUND, **said, "last_end": None, "troubles": []}
    assert line == explained(fake, "toy", {"kind": "replica", "replica": waits})[-1]


def test_what_only_the_receipt_knows_is_said_and_the_others_are_counted(fake: FakeGateway) -> None:
    kept = {
        **FOUND,
        "recomputed": False,
        "why_not_recomputed": "it is long ago",
        "refusals": {"is cordoned": 1, "is too small": 12},
        "nodes": [TAKES],
    }
    lines = explained(fake, "toy", {"kind": "replica", "replica": kept})
    assert "the nodes that its receipt names; the others aren't computed again: it is long ago" in lines
    at = lines.index("12 nodes: is too small")
    assert "1 node: is cordoned" == lines[at + 1]


def test_a_node_tells_what_it_has_free_and_which_models_it_could_take(fake: FakeGateway) -> None:
    fit = {"revision": 1, "rung": "one device", "score": 0.25}
    node = {
        "node": "n-a",
        "name": "a",
        "state": "healthy",
        "position": 9,
        "replicas": 1,
        "devices": [
            {"index": 1, "vendor": "nvidia", "memory": 8 * GIB, "claimed": GIB, "others": 2 * GIB, "free": 5 * GIB}
        ],
        "models": [
            {**fit, "model": "toy", "holds": 1, "waiting": 0, "refusal": None},
            {**fit, "model": "big", "holds": 0, "waiting": 2, "refusal": "has no device with 80 GiB free"},
        ],
        "more": 3,
    }
    assert [
        "a (n-a) is healthy and holds 1 replica, at log position 9",
        "DEVICE VENDOR MEMORY CLAIMED BY OTHERS FREE",
        "1 nvidia 8.0 GiB 1.0 GiB 2.0 GiB 5.0 GiB",
        "one more replica of each model, now:",
        "MODEL HERE WAITING ANSWER",
        "toy 1 0 could take it: one device, score 0.250",
        "big 0 2 has no device with 80 GiB free",
        "and 3 more models",
    ] == explained(fake, "a", {"kind": "node", "node": node})


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({**TAKES, "host": 2 * GIB}, "1: 3.0 GiB, machine: 2.0 GiB"),
        ({**TAKES, "devices": [1, 2], "bytes": [GIB, GIB]}, "1, 2"),
    ],
)
def test_a_replica_that_lies_in_both_memories_is_told_with_its_bytes_in_each(answer: NodeAnswer, words: str) -> None:
    assert words == claims_in_words(answer)

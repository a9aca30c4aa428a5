"""What a deploy fixes of a layout: accepted with its nodes' ids, or refused with what there is."""

from typing import Any

import pytest
from weft_contracts import subjects
from weft_contracts.commit import Recorded
from weft_contracts.facts.layout import Layout
from weft_contracts.facts.machine import Reported
from weft_contracts.facts.mesh import FormatRaised
from weft_contracts.facts.request import Rejected
from weft_contracts.facts.values import Backend, Device, Hardware
from weft_contracts.formats import READS

from .story import Story, simulated

GIB = 1 << 30


@pytest.fixture
def story() -> Story:
    """Nodes a and b with two accelerators each, in a mesh all of which reads what may be written."""
    story = Story()
    story.log.given(subjects.MESH, *(FormatRaised(fact=fact, version=version) for fact, version in READS.items()))
    story.node("a", "b")
    cards = tuple(Device(index=i, vendor="nvidia", name="card", memory=24 * GIB, number=i - 1) for i in (1, 2))
    backend = Backend(engine="simulated", version="1", vendors=("nvidia", "cpu"))
    for name in "ab":
        hardware = Hardware(cpus=2, memory=GIB, devices=cards)
        told = Reported(hardware=hardware, backends=(backend,), builtins=(), agent_version="1")
        story.log.given(subjects.machine(story.id(name)), told)
    return story


def deployed(story: Story, gib: int = 1, **layout: Any) -> Recorded:
    fixed = Layout.model_validate(layout)
    request = story.deploy("m", simulated(engine_args={"memory_bytes": gib * GIB}, layout=fixed))
    story.settle()
    return request


def test_a_layout_stands_in_the_revision_with_its_nodes_by_their_ids(story: Story) -> None:
    deployed(story, gpus=["a:1", "b:0"], preferred_nodes=["b"], tensor_parallel=1)
    (accepted,) = story.accepted()
    expected = Layout(gpus=("n-a:1", "n-b:0"), preferred_nodes=("n-b",), tensor_parallel=1)
    assert (expected, 5) == (accepted.spec.layout, accepted.v)
    # the same again changes nothing, by whichever name
    deployed(story, gpus=["n-a:1", "b:0"], preferred_nodes=["n-b"], tensor_parallel=1)
    assert 1 == len(story.accepted())


def test_another_layout_is_a_revision_that_is_rolled_out_and_answers_are_the_same(story: Story) -> None:
    deployed(story)
    deployed(story, tensor_parallel=2)
    first, second = story.accepted()
    assert first.digest == second.digest
    model = story.model()
    assert not model.of(1).runs_as(model.of(2))


@pytest.mark.parametrize(("gpus", "given_up"), [(["a:0", "a:1"], True), (["a:0", "b:0"], False), ([], False)])
def test_a_model_that_failed_on_all_nodes_of_its_devices_is_given_up(
    story: Story, gpus: list[str], given_up: bool
) -> None:
    deployed(story, gpus=gpus)
    story.fail(1, "a")
    story.settle()
    assert given_up == bool(story.unservable())


@pytest.mark.parametrize(
    ("layout", "status", "sentence"),
    [
        ({"gpus": ["a:0"], "gpus_per_replica": 2}, 400, "layout.gpus names 1 devices, and a replica is to have 2"),
        ({"gpus": ["z:0"]}, 422, "layout.gpus[0]: there is no node z; there is: a, b"),
        (
            {"tensor_parallel": 4},
            422,
            "it needs 4 devices of one vendor with 0.25 GiB each on one node, the fleet has 2 at most",
        ),
    ],
)
def test_what_can_not_be_had_is_refused_when_it_comes_in(
    story: Story, layout: dict[str, Any], status: int, sentence: str
) -> None:
    answer = story.answer(deployed(story, **layout))
    assert isinstance(answer, Rejected)
    assert (status, sentence) == (answer.status, answer.reason)
    assert [] == story.accepted()


def test_a_layout_waits_until_the_whole_mesh_reads_of_layouts() -> None:
    story = Story()
    story.node("a")
    answer = story.answer(deployed(story, distributed=False))
    assert isinstance(answer, Rejected)
    assert answer.reason.startswith("a layout over devices, and replicas over several nodes wait until the whole mesh")

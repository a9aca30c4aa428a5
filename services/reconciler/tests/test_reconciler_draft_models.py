"""Deploying with a draft model: every node is asked for it, and what was found of it becomes part of the spec."""

import pytest
from weft_contracts import subjects
from weft_contracts.commit import Recorded
from weft_contracts.engines import BUILTIN
from weft_contracts.facts.arguments import ArgumentValue
from weft_contracts.facts.inspection import Requested
from weft_contracts.facts.machine import FileFound, FileMissing
from weft_contracts.facts.request import Fulfilled, Rejected
from weft_contracts.facts.shape import ModelShape
from weft_contracts.facts.source import UploadSource
from weft_contracts.facts.values import ModelSpec, Weights
from weft_reconciler.domain.draft_faults import fault_of_draft
from weft_reconciler.domain.spec_faults import LONGEST_PATH

from .story import WEIGHTS, Story, builtin, path, simulated

DRAFT = Weights(format="gguf", weight_bytes=64, kv_bytes_per_token=8, layers=2, fingerprint="d" * 16)
MODEL, SMALL = "path:/models/x.gguf", "path:/models/small.gguf"


def drafted(base: ModelSpec | None = None, /, **arguments: ArgumentValue) -> ModelSpec:
    given: dict[str, ArgumentValue] = {"draft_model": "/models/small.gguf", **arguments}
    return (base or path("/models/x.gguf")).model_copy(update={"engine_args": given})


def answer(story: Story, node: str, source: str, found: Weights | str) -> None:
    """A node's answer about one source."""
    for commit in reversed(story.log.commits):
        asked = commit.facts[0]
        of, _, id = commit.aggregate.key.partition(".")
        if isinstance(asked, Requested) and asked.source == source and of == story.id(node):
            body = {"inspection": id, "source": source}
            fact = (
                FileMissing.model_validate(body | {"reason": found})
                if isinstance(found, str)
                else FileFound.model_validate(body | {"size": 1000, "weights": found})
            )
            story.log.given(subjects.machine(story.id(node)), fact)
            story.settle()
            return
    raise AssertionError(f"{node} was not asked about {source}")


def rejection(story: Story, request: Recorded) -> tuple[int, str]:
    last = story.answer(request)
    assert isinstance(last, Rejected)
    return last.status, last.reason


def test_a_node_that_holds_model_and_draft_makes_it_a_revision_that_tells_of_both() -> None:
    story = Story()
    story.node("a", "b")
    request = story.deploy("m", drafted())
    story.settle()
    answer(story, "a", MODEL, WEIGHTS)
    answer(story, "b", MODEL, WEIGHTS)
    answer(story, "a", SMALL, "it does not exist")
    assert [] == story.accepted()

    answer(story, "b", SMALL, DRAFT)

    assert isinstance(story.answer(request), Fulfilled)
    assert (WEIGHTS, DRAFT) == (story.model().spec.weights, story.model().spec.draft)


def test_another_file_at_the_drafts_path_is_another_revision_when_it_is_deployed_again() -> None:
    story = Story()
    story.node("a")
    for found in (DRAFT, DRAFT, DRAFT.model_copy(update={"fingerprint": "e" * 16})):
        story.deploy("m", drafted(builtin()))
        story.settle()
        answer(story, "a", "builtin:tiny", WEIGHTS)
        answer(story, "a", SMALL, found)

    assert [1, 2] == [each.revision for each in story.accepted()]
    assert 2 == len({each.digest for each in story.accepted()})


def test_a_draft_model_that_no_node_has_is_refused_with_each_nodes_reason() -> None:
    story = Story()
    story.node("a")
    request = story.deploy("m", drafted())
    story.settle()
    answer(story, "a", MODEL, WEIGHTS)
    answer(story, "a", SMALL, "/models/small.gguf does not exist on this node")

    status, reason = rejection(story, request)
    assert (422, True) == (status, "a: /models/small.gguf does not exist on this node" in reason)


@pytest.mark.parametrize(
    ("arguments", "own", "sentence"),
    [
        ({}, {"embeds": True}, "the draft model makes embeddings, and one that writes is wanted"),
        (
            {"embeddings": True},
            {},
            "the model makes embeddings, and a draft model is for one that writes: leave it out",
        ),
        (
            {},
            {"shape": ModelShape(vocabulary=1129)},
            "the draft model knows 1129 tokens and the model 1000: it is made for another, want one with the same "
            "vocabulary",
        ),
        (
            {},
            {"weight_bytes": 0},
            "engine_args.draft_model: its memory can't be computed: the file's header names no weights",
        ),
    ],
)
def test_a_draft_model_that_does_not_fit_is_refused(
    arguments: dict[str, ArgumentValue], own: dict[str, object], sentence: str
) -> None:
    story = Story()
    story.node("a")
    request = story.deploy("m", drafted(None, **arguments))
    story.settle()
    answer(story, "a", MODEL, WEIGHTS.model_copy(update={"shape": ModelShape(vocabulary=1000)}))
    answer(story, "a", SMALL, DRAFT.model_copy(update=own))

    assert (422, sentence) == rejection(story, request)


@pytest.mark.parametrize("tokens", [1000, 1128, 872, 0])
def test_a_draft_model_with_nearly_the_same_vocabulary_fits(tokens: int) -> None:
    story = Story()
    story.node("a")
    request = story.deploy("m", drafted())
    story.settle()
    told = {"shape": ModelShape(vocabulary=1000)}
    answer(story, "a", MODEL, WEIGHTS.model_copy(update=told))
    answer(story, "a", SMALL, DRAFT.model_copy(update={"shape": ModelShape(vocabulary=tokens)}))

    assert isinstance(story.answer(request), Fulfilled)


@pytest.mark.parametrize("given", ["small.gguf", "", "/a\nb", "/" + "a" * LONGEST_PATH])
def test_a_path_that_is_none_of_the_workers_is_refused(given: str) -> None:
    fault = fault_of_draft(drafted(draft_model=given), BUILTIN)
    assert fault is not None
    assert fault.endswith("give the draft model's path on the workers from the root on")


def test_a_model_that_is_sent_takes_no_draft_model() -> None:
    sent = ModelSpec(source=UploadSource(name="m.gguf"), engine="llama.cpp")
    fault = fault_of_draft(drafted(sent), BUILTIN)
    assert fault is not None
    assert "a model that is sent takes no draft model" in fault


@pytest.mark.parametrize(
    "spec",
    [path("/models/x.gguf"), simulated(), drafted()],
    ids=["a file", "no files", "a draft model"],
)
def test_a_spec_without_a_draft_model_or_with_a_good_one_has_no_fault(spec: ModelSpec) -> None:
    assert fault_of_draft(spec, BUILTIN) is None


def test_an_engine_that_takes_no_draft_model_refuses_one_by_its_field() -> None:
    story = Story()
    story.node("a")
    request = story.deploy("m", simulated().model_copy(update={"engine_args": {"draft_model": "/d.gguf"}}))
    story.settle()

    status, reason = rejection(story, request)
    assert (400, True) == (
        status,
        reason.startswith("engine_args.draft_model is no argument of the engine simulated (it has "),
    )

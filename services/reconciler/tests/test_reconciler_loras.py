"""Deploying with LoRA adapters: every node is asked for them, and those that don't fit are refused by a sentence."""

import pytest
from weft_contracts import subjects
from weft_contracts.commit import Recorded
from weft_contracts.engines import BUILTIN
from weft_contracts.facts.inspection import Requested
from weft_contracts.facts.lora import LoraAdapter
from weft_contracts.facts.machine import FileFound, FileMissing
from weft_contracts.facts.mesh import FormatRaised
from weft_contracts.facts.request import Fulfilled, Rejected
from weft_contracts.facts.values import ModelSpec, Weights
from weft_contracts.formats import READS
from weft_contracts.subjects import MESH
from weft_reconciler.domain.lora_faults import fault_of_loras
from weft_reconciler.domain.spec_faults import LONGEST_PATH

from .story import WEIGHTS, Story, builtin, path, simulated

LORA = Weights(format="gguf", architecture="", weight_bytes=64, layers=2, fingerprint="f" * 16)
MODEL, STYLE = "path:/models/x.gguf", "lora:/loras/style.gguf"


@pytest.fixture
def story() -> Story:
    made = Story()
    raised = [FormatRaised(fact=fact, version=version) for fact, version in READS.items()]
    made.log.given(MESH, *raised)
    return made


def adapted(*adapters: LoraAdapter, base: ModelSpec | None = None) -> ModelSpec:
    given = adapters or (LoraAdapter(name="style", path="/loras/style.gguf"),)
    return (base or path("/models/x.gguf")).model_copy(update={"adapters": given})


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


def test_a_node_that_holds_model_and_adapter_makes_it_a_revision_with_the_adapters_size(story: Story) -> None:
    story.node("a", "b")
    request = story.deploy("m", adapted())
    story.settle()
    answer(story, "a", MODEL, WEIGHTS)
    answer(story, "b", MODEL, WEIGHTS)
    answer(story, "a", STYLE, "it does not exist")
    assert [] == story.accepted()

    answer(story, "b", STYLE, LORA)

    assert isinstance(story.answer(request), Fulfilled)
    (adapter,) = story.model().spec.adapters
    assert (64, LORA.fingerprint, 1.0) == (adapter.bytes, adapter.fingerprint, adapter.scale)
    assert 3 == story.accepted()[0].v


def test_an_adapter_that_no_node_has_is_refused_with_each_nodes_reason(story: Story) -> None:
    story.node("a")
    request = story.deploy("m", adapted())
    story.settle()
    answer(story, "a", MODEL, WEIGHTS)
    answer(story, "a", STYLE, "/loras/style.gguf does not exist on this node")

    status, reason = rejection(story, request)
    assert (422, True) == (status, "a: /loras/style.gguf does not exist on this node" in reason)


@pytest.mark.parametrize(
    ("own", "sentence"),
    [
        (
            {"architecture": "qwen3"},
            "the LoRA adapter style is made for the architecture qwen3, the model is llama",
        ),
        (
            {"architecture": "llama", "layers": 3},
            "the LoRA adapter style changes layer 2, the model's layers are 0 to 1: it is made for another",
        ),
    ],
)
def test_an_adapter_for_another_model_is_refused(story: Story, own: dict[str, object], sentence: str) -> None:
    story.node("a")
    request = story.deploy("m", adapted())
    story.settle()
    answer(story, "a", MODEL, WEIGHTS.model_copy(update={"architecture": "llama"}))
    answer(story, "a", STYLE, LORA.model_copy(update=own))

    assert (422, sentence) == rejection(story, request)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (
            adapted(base=simulated()),
            "the engine simulated takes no LoRA adapters: leave adapters out, or choose another engine",
        ),
        (
            adapted(LoraAdapter(name="a", path="/a"), LoraAdapter(name="a", path="/b")),
            "two LoRA adapters are named a: give each a name of its own",
        ),
        (
            adapted(LoraAdapter(name="a", path="loras/a.gguf")),
            "the LoRA adapter a is at 'loras/a.gguf': give its path on the workers from the root on",
        ),
        (
            adapted(LoraAdapter(name="a", path="/a"), LoraAdapter(name="b", path="/b"), base=builtin(engine="vllm")),
            "the spec names 2 LoRA adapters, and vllm applies 1 at most",
        ),
        (
            adapted(LoraAdapter(name="a", path="/a", scale=0.5), base=builtin(engine="vllm")),
            "the LoRA adapter a has the scale 0.5, and vllm applies adapters as they are: leave the scale out",
        ),
        (
            adapted(LoraAdapter(name="a", path="/a", scale=2), base=builtin(engine="vllm")),
            "the LoRA adapter a has the scale 2, and vllm applies adapters as they are: leave the scale out",
        ),
    ],
)
def test_adapters_that_no_engine_could_apply_are_refused_at_once(story: Story, spec: ModelSpec, sentence: str) -> None:
    story.node("a")
    request = story.deploy("m", spec)
    story.settle()

    assert (400, sentence) == rejection(story, request)


@pytest.mark.parametrize(
    ("engine", "scale", "path", "refused"),
    [
        ("llama.cpp", 0.5, "/a", False),
        ("llama.cpp", 1, "/" + "a" * (LONGEST_PATH - 1), False),
        ("llama.cpp", 1, "/" + "a" * LONGEST_PATH, True),
        ("llama.cpp", 1, "/a\n", True),
        ("vllm", 1, "/a", False),
    ],
)
def test_an_engine_takes_the_scales_that_it_can_apply_and_paths_that_can_be(
    engine: str, scale: float, path: str, refused: bool
) -> None:
    spec = adapted(LoraAdapter(name="a", path=path, scale=scale), base=builtin(engine=engine))
    assert refused == (fault_of_loras(spec, BUILTIN) is not None)


@pytest.mark.parametrize("base", [simulated(engine="llama.cpp"), path("/m", engine="simulated")])
def test_what_has_no_weights_and_an_engine_without_adapters_takes_none(base: ModelSpec) -> None:
    sentence = f"the engine {base.engine} takes no LoRA adapters: leave adapters out, or choose another engine"
    assert sentence == fault_of_loras(adapted(base=base), BUILTIN)


def test_adapters_are_refused_until_the_formats_are_raised() -> None:
    story = Story()
    story.node("a")
    request = story.deploy("m", adapted())
    story.settle()

    status, reason = rejection(story, request)
    assert (409, True) == (status, reason.startswith("LoRA adapters wait until the whole mesh reads them"))


def test_a_node_that_joins_later_is_asked_for_the_adapters_of_live_models(story: Story) -> None:
    story.node("a")
    story.deploy("m", adapted())
    story.settle()
    answer(story, "a", MODEL, WEIGHTS)
    answer(story, "a", STYLE, LORA)

    story.node("b")
    story.settle()

    assert {MODEL, STYLE} == {asked.source for asked in story.questions("b")}

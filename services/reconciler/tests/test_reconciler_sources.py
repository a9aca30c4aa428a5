"""Deploying what workers fetch: a few nodes look at the source, and what they find becomes part of the spec."""

import json
from typing import Any

import pytest
from weft_contracts import subjects
from weft_contracts.commit import Recorded
from weft_contracts.digest import files_digest, lora_key
from weft_contracts.engines import BUILTIN
from weft_contracts.facts.inspection import Requested
from weft_contracts.facts.lora import LoraAdapter
from weft_contracts.facts.machine import FileFound, FileMissing
from weft_contracts.facts.mesh import FormatRaised
from weft_contracts.facts.node import Labelled
from weft_contracts.facts.request import Fulfilled, Rejected
from weft_contracts.facts.source import HfSource, HttpsSource, RemoteSource, S3Source, SourceFile
from weft_contracts.facts.values import ModelSpec
from weft_contracts.formats import READS
from weft_contracts.source_faults import MOST_FILES_BYTES
from weft_contracts.source_keys import source_key
from weft_contracts.subjects import MESH
from weft_reconciler.domain.source_readers import ASKED_FIRST, MOST_ASKED
from weft_reconciler.domain.spec_faults import fault_of_spec

from .story import WEIGHTS, Story

HUB = HfSource(repository="Qwen/Qwen3-0.6B-GGUF", file="Q8_0")
COMMIT, LATER = "1" * 40, "2" * 40
FILES = (SourceFile(name="Qwen3-0.6B-Q8_0.gguf", size=1000, checksum="sha256:" + "a" * 64),)
NODES = tuple(f"w{number}" for number in range(12))


@pytest.fixture
def story() -> Story:
    """Twelve nodes of a mesh that reads all formats."""
    made = Story()
    raised = [FormatRaised(fact=fact, version=version) for fact, version in READS.items()]
    made.log.given(MESH, *raised)
    made.node(*NODES)
    return made


def of(source: RemoteSource, **more: object) -> ModelSpec:
    return ModelSpec.model_validate({"source": source.model_dump(), "engine": "llama.cpp"} | more)


def open_questions(story: Story, source: RemoteSource | str = HUB) -> dict[str, str]:
    """Inspections of a source that wait for an answer, by the node that was asked."""
    key = source if isinstance(source, str) else source_key(source)
    asked: dict[str, str] = {}
    for commit in story.log.commits:
        for fact in commit.facts:
            if isinstance(fact, Requested) and fact.source == key:
                node, _, id = commit.aggregate.key.partition(".")
                asked[node.removeprefix("n-")] = id
            if isinstance(fact, FileFound | FileMissing):
                asked = {node: id for node, id in asked.items() if id != fact.inspection}
    return asked


def answer(story: Story, node: str, found: str | None = None, source: RemoteSource = HUB, **more: object) -> None:
    """A node's answer: why it can't, or the files at a commit."""
    body: dict[str, object] = {"inspection": open_questions(story, source)[node], "source": source_key(source)}
    if found is not None:
        fact = FileMissing.model_validate(body | {"reason": found})
    else:
        told = {"size": 1000, "weights": WEIGHTS, "files": FILES, "pinned": pinned(COMMIT), "licence": "apache-2.0"}
        fact = FileFound.model_validate(body | told | more)
    story.log.given(subjects.machine(story.id(node)), fact)
    story.settle()


def pinned(commit: str) -> HfSource:
    return HUB.model_copy(update={"revision": commit})


def rejection(story: Story, request: Recorded) -> tuple[int, str]:
    last = story.answer(request)
    assert isinstance(last, Rejected)
    return last.status, last.reason


def test_two_nodes_look_and_what_the_first_finds_is_pinned_in_the_spec(story: Story) -> None:
    # given
    request = story.deploy("m", of(HUB))
    story.settle()
    asked = sorted(open_questions(story))
    assert ASKED_FIRST == len(asked)
    # when
    answer(story, asked[1])
    # then
    spec = story.model().spec
    assert (pinned(COMMIT), FILES, WEIGHTS) == (spec.source, spec.files, spec.weights)
    done = story.answer(request)
    assert isinstance(done, Fulfilled)
    told = {"files": "1", "bytes": "1000", "licence": "apache-2.0", "source": source_key(pinned(COMMIT))}
    assert {"model": story.model().id, "revision": "1", **told} == done.result
    assert 4 == story.accepted()[0].v
    story.pass_time(20)
    assert asked == sorted(node for node in NODES if story.questions(node)), "a live model's source is asked again"


def test_the_same_form_is_a_new_revision_only_where_the_hub_has_moved(story: Story) -> None:
    for commit, revision in ((COMMIT, "1"), (COMMIT, "1"), (LATER, "2")):
        request = story.deploy("m", of(HUB))
        story.settle()
        answer(story, min(open_questions(story)), pinned=pinned(commit))
        done = story.answer(request)
        assert isinstance(done, Fulfilled)
        assert revision == done.result["revision"]


def test_others_are_asked_for_those_that_cannot_reach_the_source(story: Story) -> None:
    # given
    request = story.deploy("m", of(HUB))
    story.settle()
    first = set(open_questions(story))
    # when
    for node in first:
        answer(story, node, "huggingface.co can't be reached from here")
    # then
    others = set(open_questions(story))
    assert others
    assert others.isdisjoint(first)
    answer(story, min(others))
    assert isinstance(story.answer(request), Fulfilled)


def test_others_are_asked_for_those_that_stay_silent(story: Story) -> None:
    request = story.deploy("m", of(HUB))
    story.settle()
    first = set(open_questions(story))
    story.pass_time(5)
    others = set(open_questions(story)) - first
    assert ASKED_FIRST == len(others)
    answer(story, min(others))
    assert isinstance(story.answer(request), Fulfilled)


def test_where_no_node_reaches_it_a_bounded_few_are_asked_and_the_sentence_is_theirs(story: Story) -> None:
    request = story.deploy("m", of(HUB))
    story.settle()
    while waiting := open_questions(story):
        answer(story, min(waiting), "the repository Qwen/Qwen3-0.6B-GGUF does not exist")
    status, reason = rejection(story, request)
    assert MOST_ASKED == sum(bool(story.questions(node)) for node in NODES)
    assert 422 == status
    assert 1 == reason.count("the repository Qwen/Qwen3-0.6B-GGUF does not exist")


def test_where_all_are_silent_the_wait_ends(story: Story) -> None:
    request = story.deploy("m", of(HUB))
    story.pass_time(60)
    assert "no answer within 30 s" in rejection(story, request)[1]
    assert MOST_ASKED == len(open_questions(story))


def test_nodes_that_the_selector_wants_are_asked_first(story: Story) -> None:
    story.node("near", labels={"zone": "here"})
    story.deploy("m", of(HUB, selector={"zone": "here"}))
    story.settle()
    assert "near" in open_questions(story)


def test_nodes_that_lack_a_label_are_asked_first_where_the_selector_wants_none_that_bears_it(story: Story) -> None:
    # given
    for node in NODES:
        story.say(node, Labelled(labels={"spot": "yes"}))
    story.node("plain", "even")
    # when
    story.deploy("m", of(HUB, selector={"!spot": ""}))
    story.settle()
    # then
    assert {"plain", "even"} == open_questions(story).keys()


def test_a_node_that_lacks_an_adapter_is_not_asked_for_the_source_while_another_holds_it(story: Story) -> None:
    # given a model of a hub with an adapter, which one node of twelve has
    adapter = LoraAdapter(name="style", path="/loras/style.gguf")
    request = story.deploy("m", of(HUB, adapters=[adapter.model_dump()]))
    story.settle()
    first = set(open_questions(story))
    holder = next(node for node in NODES if node not in first)
    held = WEIGHTS.model_copy(update={"fingerprint": "f" * 16})
    asked = open_questions(story, key := lora_key(adapter))
    assert {*NODES} == asked.keys()
    # when all have answered
    for node, id in asked.items():
        body = {"inspection": id, "source": key}
        fact = (
            FileFound.model_validate(body | {"size": 64, "weights": held})
            if node == holder
            else FileMissing.model_validate(body | {"reason": "it does not exist"})
        )
        story.log.given(subjects.machine(story.id(node)), fact)
    story.settle()
    # then the holder looks at the source, and nobody else besides those that were asked before
    assert {*first, holder} == set(open_questions(story))
    assert not isinstance(story.log.facts(request.aggregate)[-1], Rejected)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"files": ()}, "it told no files"),
        ({"files": FILES * 2}, "it told one file twice"),
        ({"pinned": None}, "it told no commit"),
        ({"pinned": HUB}, "it told no commit"),
        ({"pinned": HfSource(repository="evil/twin", revision=COMMIT)}, "it told of hf:evil/twin"),
    ],
)
def test_an_answer_that_does_not_fit_the_question_is_not_taken(story: Story, more: dict[str, Any], said: str) -> None:
    request = story.deploy("m", of(HUB))
    story.settle()
    while waiting := open_questions(story):
        answer(story, min(waiting), **more)
    assert said in rejection(story, request)[1]
    assert [] == story.accepted()


def test_a_commit_that_was_asked_for_is_the_one_that_is_taken(story: Story) -> None:
    asked = pinned(LATER)
    request = story.deploy("m", of(asked))
    story.settle()
    while waiting := open_questions(story, asked):
        answer(story, min(waiting), source=asked)
    assert "it told another commit" in rejection(story, request)[1]


def test_a_hubs_answer_may_name_another_file_for_the_same_form(story: Story) -> None:
    request = story.deploy("m", of(HUB))
    story.settle()
    answer(story, min(open_questions(story)), pinned=pinned(COMMIT).model_copy(update={"file": "q8_0.gguf"}))
    assert isinstance(story.answer(request), Fulfilled)


def test_a_dry_run_asks_as_few_and_changes_nothing(story: Story) -> None:
    request = story.dry_run("m", of(HUB))
    story.settle()
    answer(story, min(open_questions(story)), gated=True)
    done = story.answer(request)
    assert isinstance(done, Fulfilled)
    told = tuple(done.result[key] for key in ("revision", "files", "bytes", "licence", "gated"))
    assert ("1", "1", "1000", "apache-2.0", "yes") == told
    assert [] == story.accepted()


def test_a_list_of_files_that_fills_an_assignment_is_refused_with_the_number(story: Story) -> None:
    # given
    many = tuple(
        SourceFile(name=f"{'long' * 20}-{number}", size=1, checksum=FILES[0].checksum) for number in range(512)
    )
    request = story.deploy("m", of(HUB))
    story.settle()
    # when
    answer(story, min(open_questions(story)), files=many)
    # then
    status, reason = rejection(story, request)
    assert (422, True) == (status, "the model has 512 files" in reason)


def test_two_hundred_shards_fit_an_assignment_with_the_largest_spec(story: Story) -> None:
    # given
    shards = tuple(
        SourceFile(name=f"model-{number:05}-of-00200.safetensors", size=5 << 30, checksum=FILES[0].checksum)
        for number in range(200)
    )
    selector = {f"label-{number}": "v" * 250 for number in range(58)}
    story.node("big", labels=selector)
    request = story.deploy("m", of(HUB, selector=selector))
    story.settle()
    # when
    answer(story, "big", files=shards)
    # then
    assert isinstance(story.answer(request), Fulfilled)
    assert len(json.dumps([file.model_dump() for file in shards])) < MOST_FILES_BYTES
    story.place(1, "big")
    assigned = story.log.commits[-1].facts
    assert len("".join(fact.model_dump_json() for fact in assigned)) < 64 << 10


def test_a_node_that_tells_more_than_a_commit_holds_is_answered_and_keeps_nobody_waiting(story: Story) -> None:
    # given a node that says of a file's header what no header says
    request = story.deploy("m", of(HUB))
    story.settle()
    lying = WEIGHTS.model_copy(update={"architecture": "a" * (60 << 10)})
    # when
    answer(story, min(open_questions(story)), weights=lying, files=FILES)
    other = story.deploy("other", of(HUB.model_copy(update={"file": "Q4_K_M"})))
    story.settle()
    # then
    status, reason = rejection(story, request)
    assert (422, True) == (status, "61440 are allowed" in reason)
    assert [] == story.accepted()
    assert open_questions(story, HUB.model_copy(update={"file": "Q4_K_M"})), other


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (HttpsSource(url="https://user:secret@models.example/m.gguf"), "a user or a password"),
        (HttpsSource(url="https://models.example/m.gguf?X-Amz-Signature=1"), "X-Amz-Signature"),
        (HttpsSource(url="https://169.254.169.254/m.gguf"), "link-local"),
        (S3Source(bucket="models", key="../m.gguf"), "without . and .."),
        (HfSource(repository="a/b", revision="../x"), "no revision is called"),
    ],
)
def test_a_source_that_none_may_ask_is_refused_before_any_node_is_asked(
    story: Story, source: RemoteSource, said: str
) -> None:
    request = story.deploy("m", of(source))
    story.settle()
    status, reason = rejection(story, request)
    assert (400, True) == (status, said in reason), reason
    assert not any(story.questions(node) for node in NODES)


def test_a_spec_that_brings_its_files_is_refused(story: Story) -> None:
    request = story.deploy("m", of(HUB, files=FILES))
    story.settle()
    assert "leave them out" in rejection(story, request)[1]


def sent(**more: object) -> ModelSpec:
    """A file that is yet to be sent: what it is comes with the request."""
    file = {"name": "m.gguf", "size": 1000, "checksum": f"blake3:{'b' * 64}"}
    told = {"source": {"kind": "upload", "name": "m.gguf"}, "engine": "llama.cpp"}
    return ModelSpec.model_validate(told | {"files": [file], "weights": WEIGHTS.model_dump()} | more)


def test_a_model_that_is_sent_is_taken_as_its_sender_tells_it_and_no_node_is_asked(story: Story) -> None:
    spec = sent()
    request = story.deploy("m", spec)
    story.settle()
    accepted = story.answer(request)
    assert isinstance(accepted, Fulfilled)
    assert {"files": "1", "bytes": "1000", "upload": files_digest(spec)}.items() <= accepted.result.items()
    assert (spec.files, spec.weights) == (story.model().spec.files, story.model().spec.weights)
    assert not any(story.questions(node) for node in NODES)
    # and a dry run of the same tells as much
    trial = story.dry_run("n", spec)
    story.settle()
    tried = story.answer(trial)
    assert isinstance(tried, Fulfilled)
    assert files_digest(spec) == tried.result["upload"]


OF_A_FOLDER = ("model.safetensors", "config.json", "tokenizer.json")


def of_a_folder(**more: object) -> ModelSpec:
    files = [{"name": name, "size": 1000, "checksum": f"blake3:{'b' * 64}"} for name in OF_A_FOLDER]
    weights = {"format": "safetensors", "weight_bytes": 1000, "layers": 2}
    told = {"source": {"kind": "upload", "name": "model.safetensors"}, "engine": "vllm", "files": files}
    return ModelSpec.model_validate(told | {"weights": weights} | more)


def test_a_folder_of_safetensors_that_is_sent_is_taken_where_an_engine_takes_it() -> None:
    assert fault_of_spec(of_a_folder(), BUILTIN) is None
    assert "and a folder with safetensors is to be sent" in str(fault_of_spec(of_a_folder(engine="llama.cpp"), BUILTIN))
    untold = fault_of_spec(of_a_folder(weights={"format": "gguf", "weight_bytes": 9, "layers": 2}), BUILTIN)
    assert "reads its config.json first" in str(untold)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"files": []}, "tells no files"),
        ({"weights": {"format": "none"}}, "tells no weights"),
        ({"weights": {**WEIGHTS.model_dump(), "weight_bytes": 1001}}, "1001 bytes of weights"),
        ({"adapters": [{"name": "l", "path": "/l.gguf"}]}, "takes no LoRA adapters"),
        ({"engine": "vllm"}, "and a GGUF file is to be sent"),
        ({"engine": "simulated"}, "takes no files"),
    ],
)
def test_a_model_that_is_sent_and_not_told_of_is_refused(story: Story, more: dict[str, object], said: str) -> None:
    request = story.deploy("m", sent(**more))
    story.settle()
    status, reason = rejection(story, request)
    assert (400, True) == (status, said in reason), reason


def test_sources_that_are_fetched_wait_until_the_mesh_reads_them() -> None:
    story = Story()
    story.node("a")
    request = story.deploy("m", of(HUB))
    story.settle()
    status, reason = rejection(story, request)
    assert (409, True) == (status, "models that workers fetch wait until the whole mesh reads them" in reason)


@pytest.mark.parametrize("source", [HttpsSource(url="https://models.example/m.gguf"), S3Source(bucket="abc", key="m")])
def test_sources_without_commits_are_taken_as_they_are(story: Story, source: RemoteSource) -> None:
    request = story.deploy("m", of(source))
    story.settle()
    answer(story, min(open_questions(story, source)), source=source, pinned=None)
    assert isinstance(story.answer(request), Fulfilled)
    assert (source, FILES) == (story.model().spec.source, story.model().spec.files)


def test_without_a_worker_for_the_engine_of_a_repository_the_sentence_names_one_that_there_is(story: Story) -> None:
    request = story.deploy("m", of(HfSource(repository="Qwen/Qwen3-0.6B"), engine="vllm"))
    story.pass_time(60)
    status, reason = rejection(story, request)
    assert 422 == status
    assert "no worker has the engine vllm" in reason
    assert reason.endswith(
        "give a repository of GGUF files, such as hf:Qwen/Qwen3-0.6B-GGUF:Q8_0, which llama.cpp takes"
    )

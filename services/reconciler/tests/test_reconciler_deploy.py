"""Deploying: what is asked of whom, what is accepted, what is refused with which sentence."""

import pytest
from weft_contracts import subjects
from weft_contracts.commit import Recorded
from weft_contracts.engines import BUILTIN, Argument
from weft_contracts.engines.profile import ArgumentClaim, Task
from weft_contracts.facts.inspection import Requested
from weft_contracts.facts.layers import LayerRun
from weft_contracts.facts.machine import Reported
from weft_contracts.facts.mesh import (
    EngineProfileSet,
    FormatRaised,
    PolicySet,
    PolicyWithdrawn,
    SecretRemoved,
    SecretSet,
)
from weft_contracts.facts.model import Scaled, SpecAccepted
from weft_contracts.facts.name import Claimed, Released
from weft_contracts.facts.node import Approved, Healthy
from weft_contracts.facts.request import Fulfilled, Rejected
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import Backend, ModelSpec
from weft_contracts.formats import READS
from weft_contracts.policies import PlacementPolicy, PolicyWeights
from weft_contracts.subjects import MESH
from weft_reconciler.domain.spec_faults import LONGEST_PATH

from .story import WEIGHTS, Story, builtin, path, simulated


@pytest.fixture
def story() -> Story:
    return Story()


def rejection(story: Story, request: Recorded) -> tuple[int, str]:
    answer = story.answer(request)
    assert isinstance(answer, Rejected)
    return answer.status, answer.reason


def test_a_simulated_model_is_accepted_at_once_and_gets_its_replica(story: Story) -> None:
    story.node("a")
    request = story.deploy("m", simulated())

    story.settle()

    model = story.model()
    assert Fulfilled(result={"model": model.id, "revision": "1"}) == story.answer(request)
    assert [1] == story.numbers()
    assert [] == story.questions("a")


def test_lists_and_objects_are_refused_until_the_formats_are_raised(story: Story) -> None:
    # given
    story.node("a")
    told = {
        "name": "pluggable",
        "arguments": {"plugins": Argument(type="list")},
        "claim": ArgumentClaim(argument="memory_bytes", default=1),
    }
    structured = BUILTIN["simulated"].model_copy(update=told)
    story.log.given(subjects.MESH, EngineProfileSet(profile=structured))
    backend = Backend(engine="pluggable", version="1", vendors=("cpu",), profile=structured.digest)
    story.report("a", backend)
    spec = simulated(engine="pluggable", engine_args={"plugins": ["a"]})
    # when
    refused = story.deploy("m", spec)
    story.settle()
    # then
    status, reason = rejection(story, refused)
    assert 409 == status, reason
    assert "weft upgrade finish" in reason
    # when
    for fact, version in READS.items():
        story.log.given(subjects.MESH, FormatRaised(fact=fact, version=version))
    request = story.deploy("m", spec)
    story.settle()
    # then
    assert isinstance(story.answer(request), Fulfilled)
    assert spec == story.model().spec


def test_the_chain_of_causes_goes_from_the_replica_back_to_the_request(story: Story) -> None:
    story.node("a")
    request = story.deploy("m", simulated())

    story.settle()

    accepted = next(c for c in story.log.commits if isinstance(c.facts[0], SpecAccepted))
    scaled = next(c for c in story.log.commits if isinstance(c.facts[0], Scaled))
    assert (request.event_id, accepted.event_id) == (accepted.causation_id, scaled.causation_id)
    assert {request.correlation_id} == {accepted.correlation_id, scaled.correlation_id}


def test_a_file_is_looked_for_on_every_healthy_node_and_its_header_becomes_part_of_the_spec(
    story: Story,
) -> None:
    story.node("a", "b")
    request = story.deploy("m", path("/models/x.gguf"))
    story.settle()
    assert (1, 1) == (len(story.questions("a")), len(story.questions("b")))

    story.inspect("b", "there is no such file")
    story.settle()
    story.inspect("a", WEIGHTS)
    story.settle()

    assert isinstance(story.answer(request), Fulfilled)
    assert WEIGHTS == story.model().spec.weights
    assert [1] == story.numbers()


LAYERED = WEIGHTS.model_copy(
    update={"layer_runs": (LayerRun(2, 450, 4),), "output_bytes": 50, "input_bytes": 50},
)


def test_a_spec_keeps_the_sizes_of_layers_only_where_part_of_them_goes_to_an_accelerator(story: Story) -> None:
    story.node("a")
    for name, arguments, kept in (("m", {"gpu_layers": 1}, LAYERED), ("n", {}, WEIGHTS)):
        story.deploy(name, path(f"/models/{name}.gguf", engine_args=arguments))
        story.settle()
        story.inspect("a", LAYERED)
        story.settle()
        assert kept == story.model(name).spec.weights


def test_part_of_the_layers_waits_for_a_worker_that_tells_their_sizes(story: Story) -> None:
    story.node("a", "b")
    request = story.deploy("m", path("/models/x.gguf", engine_args={"gpu_layers": 1}))
    story.settle()
    story.inspect("a", WEIGHTS)
    story.settle()
    assert [] == story.accepted()

    story.inspect("b", LAYERED)
    story.settle()

    assert isinstance(story.answer(request), Fulfilled)
    assert LAYERED == story.model().spec.weights


def test_part_of_the_layers_is_refused_where_only_older_workers_read_the_file(story: Story) -> None:
    story.node("a")
    request = story.deploy("m", path("/models/x.gguf", engine_args={"gpu_layers": 1}))
    story.settle()
    story.inspect("a", WEIGHTS)
    story.settle()

    status, reason = rejection(story, request)
    assert 422 == status
    assert reason.startswith("engine_args.gpu_layers is 1 of 2 layers, and the worker that read the file told no sizes")


def test_a_file_that_no_node_has_is_refused_with_each_nodes_reason(story: Story) -> None:
    story.node("a", "b")
    request = story.deploy("m", path("/models/x.gguf"))
    story.settle()

    story.inspect("a", "there is no such file")
    story.inspect("b", "/models/x.gguf is not a GGUF file")
    story.settle()

    expected = "no node can load path:/models/x.gguf (a: there is no such file; b: /models/x.gguf is not a GGUF file)"
    assert (422, expected) == rejection(story, request)
    assert [] == story.accepted()


def test_a_node_that_does_not_answer_is_waited_for_ten_seconds(story: Story) -> None:
    story.node("a")
    request = story.deploy("m", path("/models/x.gguf"))
    assert not any(isinstance(fact, Rejected) for fact in story.pass_time(5))

    story.pass_time(5)

    assert (422, "no node can load path:/models/x.gguf (a: no answer within 10 s)") == rejection(story, request)


def test_without_a_healthy_node_a_deploy_waits_and_then_says_so(story: Story) -> None:
    story.join("shy")
    request = story.deploy("m", simulated())
    assert [] == story.pass_time(5)

    story.pass_time(5)

    assert (503, "no node is healthy: approve one of those that wait (shy)") == rejection(story, request)


def test_a_node_that_comes_within_ten_seconds_serves_the_deploy(story: Story) -> None:
    request = story.deploy("m", simulated())
    story.pass_time(5)
    story.node("a")

    story.settle()

    assert isinstance(story.answer(request), Fulfilled)


def test_a_request_that_waited_while_nobody_decided_is_not_refused_for_it(story: Story) -> None:
    story.settle()
    request = story.deploy("m", simulated())
    story.sleep(120)

    assert [] == story.settle()
    story.node("a")
    story.settle()

    assert isinstance(story.answer(request), Fulfilled)


@pytest.mark.parametrize(
    ("name", "spec", "status", "words"),
    [
        ("m", simulated(3, 2), 400, "max_replicas 2 is below min_replicas 3"),
        ("m", simulated(2000, 0), 400, "2000 replicas are more than the 1000"),
        ("m", builtin(engine="simulated"), 400, "the simulated engine takes no files"),
        ("m", ModelSpec(source=SimulatedSource(), engine="llama.cpp"), 400, "needs a file"),
        ("m", path("x.gguf"), 400, "the path 'x.gguf' is relative"),
        ("m", builtin("huge"), 422, "no built-in model is named 'huge': there are small, tiny"),
        ("m", path("/folder", engine="vllm"), 422, "no worker has the engine vllm, which takes a folder"),
        ("m", path("/folder", engine="vllm"), 422, "they have llama.cpp; give a GGUF file, which llama.cpp takes"),
        (
            "m",
            path("/x", engine="vroom"),
            400,
            "there is no engine 'vroom': there are llama.cpp, openai, simulated, vllm",
        ),
        ("m", simulated(selector={"!gpu": "yes"}), 400, "takes no value"),
        ("m", simulated(selector={"": "yes"}), 400, "empty label name"),
        ("m", simulated(engine_args={"x": "y" * 20_000}), 400, "16384 are allowed"),
        ("m", simulated(engine_args={"x": "\N{WAVING HAND SIGN}" * 5_000}), 400, "16384 are allowed"),
        ("m", simulated(engine_args={"x": 1}), 400, "engine_args.x is no argument of the engine simulated (it has ms_"),
        ("m", simulated(engine_args={"dimensions": 0}), 400, "engine_args.dimensions: input should be greater"),
        (" ", simulated(), 400, "the model has no name"),
        ("m" * 256, simulated(), 400, "has 256 characters, 255 are allowed"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(
    story: Story, name: str, spec: ModelSpec, status: int, words: str
) -> None:
    story.node("a", builtins=("tiny",))
    story.node("b", builtins=("small", "tiny"))
    request = story.deploy(name, spec)

    story.settle()

    assert status == rejection(story, request)[0]
    assert words in rejection(story, request)[1]
    assert [] == story.accepted()
    assert [] == story.questions("a")


def test_a_node_without_the_engine_is_not_asked_what_the_engine_could_load(story: Story) -> None:
    story.node("a")
    story.node("b", engines=("simulated",))
    request = story.deploy("m", builtin())
    story.settle()
    assert (1, []) == (len(story.questions("a")), story.questions("b"))
    # so what it would say of the source stands for no other engine, and the deploy does not wait for it
    story.inspect("a", "it is no GGUF file")
    story.settle()
    assert (422, "no node can load builtin:tiny (a: it is no GGUF file)") == rejection(story, request)


def test_a_node_that_gets_the_engine_later_is_asked_then(story: Story) -> None:
    story.node("a")
    story.node("b", engines=("simulated",))
    story.deploy("m", builtin())
    story.settle()
    story.inspect("a", WEIGHTS)
    story.settle()
    hardware = story.state.fleet.nodes[story.id("b")].hardware
    assert hardware is not None
    engines = (Backend(engine="llama.cpp", version="1", vendors=("cpu",)),)
    said = Reported(hardware=hardware, backends=engines, builtins=("tiny",), agent_version="1")
    story.log.given(subjects.machine(story.id("b")), said)

    story.settle()

    assert [Requested(source="builtin:tiny", engine="llama.cpp")] == story.questions("b")


def test_an_engine_that_only_a_silent_node_has_is_waited_for_and_then_refused(story: Story) -> None:
    story.node("a", engines=("simulated",))
    story.node("b")
    story.lose("b")
    request = story.deploy("m", builtin())
    assert [] == story.settle()
    story.pass_time(11)
    assert (503, "no healthy node has the engine llama.cpp") == rejection(story, request)


def test_a_node_that_has_not_said_yet_which_engines_it_has_may_still_take_a_deploy(story: Story) -> None:
    # given a node that can't load the file, and one that is healthy and has said nothing
    story.node("a")
    story.join("b")
    story.say("b", Approved(by="t-1"), Healthy())
    request = story.deploy("m", path("/m"))
    story.settle()
    story.inspect("a", "no such file")
    assert [] == story.settle()
    # then that is waited for, as long as a deploy waits at all
    story.pass_time(11)
    assert (422, "no node can load path:/m (a: no such file)") == rejection(story, request)


def test_a_context_longer_than_the_models_is_refused(story: Story) -> None:
    story.node("a")
    request = story.deploy("m", builtin(context_tokens=4096))
    story.settle()
    story.inspect("a", WEIGHTS)

    story.settle()

    expected = "context_tokens 4096 is more than the 2048 that the model was made for"
    assert (422, expected) == rejection(story, request)


def test_a_model_that_makes_embeddings_is_refused_by_an_engine_that_can_not(story: Story) -> None:
    # given an engine that serves chats alone
    writes_only = BUILTIN["llama.cpp"].model_copy(update={"name": "writer", "serves": ("chat",)})
    story.state.fleet.engines = {**BUILTIN, "writer": writes_only}
    story.node("a", engines=("writer",))
    request = story.deploy("m", builtin(engine="writer"))
    story.settle()

    story.inspect("a", WEIGHTS.model_copy(update={"embeds": True}))
    story.settle()

    expected = "the model makes embeddings, which the engine writer can't: choose another engine"
    assert (422, expected) == rejection(story, request)


def test_a_model_that_makes_embeddings_is_accepted_for_an_engine_that_can(story: Story) -> None:
    story.node("a")
    story.deploy("m", builtin())
    story.settle()

    story.inspect("a", WEIGHTS.model_copy(update={"embeds": True}))
    story.settle()

    (accepted,) = story.accepted()
    assert accepted.spec.weights.embeds


@pytest.mark.parametrize(
    ("serves", "embeds"), [(("chat", "embeddings"), False), (("embeddings",), True), (("rerank",), False)]
)
def test_without_files_the_engines_profile_says_whether_a_model_makes_embeddings(
    story: Story, serves: tuple[Task, ...], embeds: bool
) -> None:
    engine = BUILTIN["simulated"].model_copy(update={"name": "letters", "serves": serves})
    story.state.fleet.engines = {**BUILTIN, "letters": engine}
    story.node("a", engines=("letters",))
    story.deploy("m", simulated().model_copy(update={"engine": "letters"}))

    story.settle()

    (accepted,) = story.accepted()
    assert embeds == accepted.spec.weights.embeds


@pytest.mark.parametrize(("letters", "asked"), [(LONGEST_PATH - 1, True), (LONGEST_PATH, False)])
def test_a_path_has_its_longest_length(story: Story, letters: int, asked: bool) -> None:
    story.node("a")
    story.deploy("m", path("/" + "x" * letters))

    story.settle()

    assert asked == bool(story.questions("a"))


@pytest.mark.parametrize(
    ("name", "spec"), [("m" * 255, simulated()), ("m", simulated(1000)), ("m", simulated(0, 1000))]
)
def test_the_longest_name_and_the_most_replicas_are_accepted(story: Story, name: str, spec: ModelSpec) -> None:
    story.node("a")
    request = story.deploy(name, spec)

    story.settle()

    assert isinstance(story.answer(request), Fulfilled)


def test_only_nodes_that_an_approval_would_help_are_named_where_none_is_healthy(story: Story) -> None:
    story.node("silent")
    story.lose("silent")
    story.join("refused")
    story.remove("refused")
    request = story.deploy("m", simulated())

    story.pass_time(10)

    words = "no node is healthy: start a worker, or see why those that joined are silent"
    assert (503, words) == rejection(story, request)


def test_what_a_removed_node_was_asked_is_forgotten(story: Story) -> None:
    story.node("a", "b")
    story.deploy("m", path("/x.gguf"))
    story.settle()

    story.remove("a")
    story.inspect("b", WEIGHTS)

    assert {story.id("b")} == {node for nodes in story.state.inspections.by_key.values() for node in nodes}


def test_a_file_whose_memory_can_not_be_computed_is_refused(story: Story) -> None:
    story.node("a")
    request = story.deploy("m", builtin())
    story.settle()
    story.inspect("a", WEIGHTS.model_copy(update={"kv_bytes_per_token": 0}))

    story.settle()

    expected = "its memory can't be computed: the file's header does not give the KV cache's size"
    assert (422, expected) == rejection(story, request)


def test_the_same_spec_again_changes_nothing(story: Story) -> None:
    story.node("a")
    story.deploy("m", simulated())
    story.settle()
    again = story.deploy("m", simulated())

    story.settle()

    assert Fulfilled(result={"model": story.model().id, "revision": "1"}) == story.answer(again)
    assert 1 == len(story.accepted())


def test_two_requests_for_one_new_name_make_one_model(story: Story) -> None:
    story.node("a")
    first, second = story.deploy("m", simulated()), story.deploy("m", simulated())

    story.settle()

    assert story.answer(first) == story.answer(second)
    assert 1 == len(story.accepted())


def test_a_deploy_is_decided_the_same_by_every_decider(story: Story) -> None:
    story.node("a")
    story.deploy("m", simulated())
    other = Story()
    for commit in story.log.commits:
        other.log.given(commit.aggregate, *commit.facts, cause=commit.cause)

    story.settle()
    other.settle()

    assert story.model().id == other.model().id


def test_a_paths_file_is_looked_at_anew_and_a_changed_header_makes_a_revision(story: Story) -> None:
    story.node("a")
    story.deploy("m", path("/x.gguf"))
    story.settle()
    story.inspect("a", WEIGHTS)
    story.settle()

    story.deploy("m", path("/x.gguf"))
    story.settle()
    assert 2 == len(story.questions("a"))
    story.inspect("a", WEIGHTS.model_copy(update={"layers": 3}))
    story.settle()

    assert [1, 2] == [accepted.revision for accepted in story.accepted()]


def test_a_builtin_model_is_asked_for_once_a_node(story: Story) -> None:
    story.node("a")
    story.deploy("m", builtin())
    story.settle()
    story.inspect("a", WEIGHTS)
    story.settle()

    again = story.deploy("other", builtin())
    story.settle()

    assert isinstance(story.answer(again), Fulfilled)
    assert 1 == len(story.questions("a"))


def test_a_node_that_joins_later_is_asked_for_every_live_source(story: Story) -> None:
    story.node("a")
    story.deploy("m", builtin())
    story.settle()
    story.inspect("a", WEIGHTS)
    story.settle()
    gone = story.deploy("gone", path("/gone.gguf"))
    story.pass_time(15)
    assert isinstance(story.answer(gone), Rejected)

    story.node("b")
    story.settle()

    assert ["builtin:tiny"] == [question.source for question in story.questions("b")]


def test_a_deleted_models_name_is_free_for_another(story: Story) -> None:
    story.node("a")
    story.deploy("m", simulated())
    story.settle()
    first = story.model().id
    request = story.delete(first)

    story.settle()
    story.deploy("m", simulated())
    story.settle()

    assert Fulfilled(result={"model": first}) == story.answer(request)
    assert not story.state.fleet.replicas[story.scaled()[0].add[0]].wanted
    assert first != story.model().id
    name = subjects.name("model", "m")
    assert [Claimed, Released, Claimed] == [type(fact) for fact in story.log.facts(name)]
    assert 2 == sum(isinstance(fact, Claimed) for fact in story.log.facts())


def test_what_does_not_exist_can_be_neither_deleted_nor_retried(story: Story) -> None:
    story.node("a")
    story.deploy("m", simulated())
    delete, retry = story.delete("m-none"), story.retry("m-none")

    story.settle()

    assert 404 == rejection(story, delete)[0]
    assert 404 == rejection(story, retry)[0]


def test_who_names_a_model_that_is_not_there_hears_which_are(story: Story) -> None:
    story.node("a")
    story.deploy("gone", simulated())
    story.deploy("m", simulated())
    story.settle()
    story.delete(story.model("gone").id)
    story.settle()

    delete = story.delete("m-none")
    story.settle()

    assert (404, "no model has the id m-none: there are m") == rejection(story, delete)


def test_a_deleted_model_can_be_neither_deleted_nor_retried_again(story: Story) -> None:
    story.node("a")
    story.deploy("m", simulated())
    story.settle()
    id = story.model().id
    story.delete(id)
    story.settle()

    delete, retry = story.delete(id), story.retry(id)
    story.settle()

    assert [404, 404] == [rejection(story, request)[0] for request in (delete, retry)]


def test_a_file_of_the_same_shape_and_another_content_makes_a_revision(story: Story) -> None:
    story.node("a")
    for fingerprint in ("aa", "aa", "bb"):
        story.deploy("m", path("/x.gguf"))
        story.settle()
        story.inspect("a", WEIGHTS.model_copy(update={"fingerprint": fingerprint}))
        story.settle()

    assert [1, 2] == [accepted.revision for accepted in story.accepted()]
    assert 2 == len({accepted.digest for accepted in story.accepted()})


def test_an_engine_that_no_node_has_reported_yet_is_waited_for(story: Story) -> None:
    story.join("a")
    story.say("a", Approved(by="t-1"), Healthy())
    request = story.deploy("m", simulated())
    assert [] == story.pass_time(5)

    story.pass_time(5)

    assert (422, "no worker has the engine simulated, which takes no files: they have none") == rejection(
        story, request
    )


def test_a_dry_run_asks_every_node_and_changes_nothing(story: Story) -> None:
    story.node("a", "b")
    request = story.dry_run("m", path("/x.gguf"))
    story.settle()
    story.inspect("a", WEIGHTS)
    assert [] == story.settle()  # it waits for the other node: who asked wants to know about each

    story.inspect("b", "there is no such file")
    story.settle()

    assert Fulfilled(result={"revision": "1"}) == story.answer(request)
    assert [] == story.accepted()


def test_a_dry_run_of_what_could_not_be_deployed_is_refused_as_the_deploy_would_be(story: Story) -> None:
    story.node("a")
    missing, bad = story.dry_run("m", path("/x.gguf")), story.dry_run("m", simulated(3, 2))
    story.settle()
    story.inspect("a", "there is no such file")

    story.settle()

    assert (422, "no node can load path:/x.gguf (a: there is no such file)") == rejection(story, missing)
    assert 400 == rejection(story, bad)[0]


def test_a_dry_run_does_not_wait_for_ever_for_a_node_that_is_silent(story: Story) -> None:
    story.node("a", "b")
    request = story.dry_run("m", path("/x.gguf"))
    story.settle()
    story.inspect("a", WEIGHTS)

    story.pass_time(10)

    assert isinstance(story.answer(request), Fulfilled)


def test_a_dry_run_names_the_revision_that_a_deploy_would_make(story: Story) -> None:
    story.node("a")
    story.deploy("m", simulated())
    story.settle()
    same, other = story.dry_run("m", simulated()), story.dry_run("m", simulated(context_tokens=9))

    story.settle()

    assert Fulfilled(result={"revision": "1"}) == story.answer(same)
    assert Fulfilled(result={"revision": "2"}) == story.answer(other)
    assert 1 == len(story.accepted())


def naming(first: str, *others: str) -> ModelSpec:
    more = {f"a{n}": value for n, value in enumerate(others)}
    return simulated().model_copy(update={"engine_args": {"fail_load": first, **more}})


def test_a_spec_that_names_a_secret_is_refused_until_it_is_set(story: Story) -> None:
    story.node("a")
    expected = "there is no secret key: set it first, by `weft secrets set key`"
    assert (422, expected) == rejection(story, settled(story, story.deploy("m", naming("secret:key"))))
    story.log.given(MESH, SecretSet(name="key", version=1, sealed="0" * 32))
    assert isinstance(story.answer(settled(story, story.deploy("m", naming("secret:key")))), Fulfilled)
    # gone again, it may be named by nothing new; what says nothing of secrets is as ever
    story.log.given(MESH, SecretRemoved(name="key"))
    assert 422 == rejection(story, settled(story, story.deploy("n", naming("secret:key"))))[0]
    assert isinstance(story.answer(settled(story, story.deploy("o", naming("a secret: key")))), Fulfilled)


def test_a_spec_that_names_a_policy_is_refused_until_it_is_told_and_hears_which_there_are(story: Story) -> None:
    story.node("a")
    spec = simulated().model_copy(update={"policy": "night"})
    expected = "there is no policy night; there is: balanced, binpack, spread"
    assert (422, expected) == rejection(story, settled(story, story.deploy("m", spec)))
    assert (422, expected) == rejection(story, settled(story, story.dry_run("m", spec)))
    story.log.given(MESH, PolicySet(policy=PlacementPolicy(name="night", weights=PolicyWeights(idle=1))))
    assert isinstance(story.answer(settled(story, story.deploy("m", spec))), Fulfilled)
    assert "night" == story.accepted()[-1].spec.policy
    # one that Weft comes with need not be told; gone again, the other may be named by nothing new
    packed = simulated().model_copy(update={"policy": "binpack"})
    assert isinstance(story.answer(settled(story, story.deploy("n", packed))), Fulfilled)
    story.log.given(MESH, PolicyWithdrawn(name="night"))
    assert 422 == rejection(story, settled(story, story.deploy("o", spec)))[0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("secret:",), "engine_args say 'secret:', and no secret can be called so"),
        (("secret:a b",), "engine_args say 'secret:a b', and no secret can be called so"),
        (tuple(f"secret:s{n}" for n in range(9)), "engine_args name 9 secrets, 8 are allowed"),
    ],
)
def test_what_names_no_secret_or_too_many_is_wrong_by_itself(
    story: Story, arguments: tuple[str, ...], words: str
) -> None:
    story.node("a")
    status, reason = rejection(story, settled(story, story.deploy("m", naming(*arguments))))
    assert (400, True) == (status, words in reason), reason


def settled(story: Story, request: Recorded) -> Recorded:
    story.settle()
    return request

"""vLLM on the processor with the built-in model, over a real session with a real process."""

import json
import re
import signal
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager
from typing import Any

import psutil
import pytest
import weft_tiny
from weft_contracts.engines import BUILTIN
from weft_contracts.facts.source import PathSource
from weft_contracts.facts.values import ModelSpec, Weights
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import SessionClient
from weft_placement.claim import need_of
from weft_testing.waiting import until

pytestmark = pytest.mark.slow

StartHost = Callable[..., AbstractAsyncContextManager[Any]]
StartVllm = Callable[..., Any]
Ask = Callable[..., Any]

GREEDY = pb.Sampling(temperature=0)
ENDLESS = pb.Sampling(temperature=0, ignore_end=True)
HOT = [pb.Sampling(temperature=2, top_k=0, top_p=1, min_p=0, seed=seed) for seed in range(6)]
ASKED = (
    "What is the capital of {}?",
    "Tell me the capital of {}.",
    "capital of {}",
    "And {}?",
    "Hello, who are you, {}?",
)


CONTEXT, CONCURRENCY = 512, 8
WEIGHTS = Weights(
    format="safetensors",
    weight_bytes=(weft_tiny.folder() / "model.safetensors").stat().st_size,
    kv_bytes_per_token=2 * 3 * 2 * 64 * 2,
    kv_heads=2,
)
SPEC = ModelSpec(
    source=PathSource(path="/m"), engine="vllm", weights=WEIGHTS, context_tokens=CONTEXT, concurrency=CONCURRENCY
)
CLAIM = need_of(SPEC, BUILTIN["vllm"]).on_each("cpu", 1)


@pytest.fixture(scope="module")
def host(start_vllm: StartVllm) -> Generator[Any, None, None]:
    host = start_vllm(
        model_path=str(weft_tiny.folder()),
        engine_args={"dtype": "float32", "enforce_eager": True},
        context_tokens=CONTEXT,
        concurrency=CONCURRENCY,
        devices=[{"vendor": "cpu", "bytes": CLAIM}],
    )
    yield host
    host.end()


@pytest.fixture
async def client(host: Any) -> AsyncGenerator[SessionClient, None]:
    client = await host.open()
    yield client
    await client.close()


async def test_greedy_text_is_word_for_word_llama_cpp_s(client: SessionClient, start: StartHost, ask: Ask) -> None:
    countries = [each["country"] for each in json.loads((weft_tiny.folder() / "facts.json").read_text())["questions"]]
    prompts = [ASKED[i % len(ASKED)].format(country) for i, country in enumerate(countries[:50])]
    assert 50 == len(set(prompts))

    by_vllm = [ask(client, prompt, max_tokens=60, sampling=GREEDY) for prompt in prompts]
    async with start(engine="llama.cpp", model_path=str(weft_tiny.gguf_path())) as other:
        await other.phase("ready")
        one = await other.open()
        by_llamacpp = [ask(one, prompt, max_tokens=60, sampling=GREEDY) for prompt in prompts]
        for answer in (*by_vllm, *by_llamacpp):
            assert (await answer.end()).finish in (pb.FINISH_STOP, pb.FINISH_LENGTH)
        await one.close()

    assert [answer.text for answer in by_llamacpp] == [answer.text for answer in by_vllm]
    assert [answer.ids for answer in by_llamacpp] == [answer.ids for answer in by_vllm]


async def test_a_prompt_as_ids_is_answered_as_the_chat_and_an_unknown_id_refused(
    client: SessionClient, ask: Ask
) -> None:
    chat = ask(client, "What is the capital of France?", sampling=GREEDY)
    ids = [1, 278, 201, 377, 287, 303, 285, 291, 305, 836, 33, 2, 201, 1, 281, 201]  # by the model's own template
    question = pb.Chat(messages=[pb.Message(role="user", content="What is the capital of France?")])
    assert ids == await client.unary.prompt_ids(question)
    same = ask(client, "", tokens=pb.TokenIds(ids=ids), sampling=GREEDY)
    await chat.end()
    await same.end()
    assert ("Paris" in chat.text, chat.ids) == (True, same.ids)

    last = await ask(client, "", tokens=pb.TokenIds(ids=[2048])).end()
    assert (pb.FAULT_BAD_REQUEST, True) == (last.fault, "this model's ids go from 0 to 2047" in last.error)


async def test_steps_move_with_the_engine_and_stand_when_it_stands(host: Any, client: SessionClient, ask: Ask) -> None:
    async def runs(requests: int) -> bool:
        return client.load.running == requests

    before = client.load.steps
    answer = ask(client, "go on", max_tokens=20, sampling=ENDLESS)
    await answer.end()
    await until(lambda: runs(0))
    assert client.load.steps >= before + 20
    held = host.processes()
    for process in held:
        process.suspend()
    try:
        stood = client.load.steps
        waiting = ask(client, "go on", max_tokens=5, sampling=ENDLESS)
        await until(lambda: runs(1))
        assert (stood, False) == (client.load.steps, waiting.first.is_set())
    finally:
        for process in held:
            process.resume()
    assert pb.FINISH_LENGTH == (await waiting.end()).finish
    assert client.load.steps > stood


async def test_a_repeated_prompt_is_found_in_the_prefix_cache(client: SessionClient, ask: Ask) -> None:
    long = "What is the capital of France? " * 60
    first = await ask(client, long, max_tokens=2, sampling=GREEDY).end()
    again = await ask(client, long, max_tokens=2, sampling=GREEDY).end()
    assert first.usage.prompt_tokens > again.usage.cached_tokens > 0 == first.usage.cached_tokens


async def test_an_answer_fits_its_schema_however_wild_the_draw(client: SessionClient, ask: Ask) -> None:
    whole = {
        "type": "object",
        "properties": {"colour": {"enum": ["rot", "grün"]}, "count": {"type": "integer", "minimum": -3, "maximum": 12}},
        "required": ["colour", "count"],
    }
    patterned = {"type": "string", "pattern": "^[A-Z]{2}-\\d{3}$"}
    for sampling in HOT:
        fitting = ask(client, "give", sampling=sampling, constraint=pb.Constraint(json_schema=json.dumps(whole)))
        kept = ask(client, "give", sampling=sampling, constraint=pb.Constraint(json_schema=json.dumps(patterned)))
        several = pb.Constraint(json_schema='{"const":{"a":1}}', most=3, or_json='{"enum":[[],[2]]}')
        one_of = ask(client, "give", sampling=sampling, constraint=several)
        for answer in (fitting, kept, one_of):
            assert pb.FINISH_STOP == (await answer.end()).finish
        value = json.loads(fitting.text)
        assert (True, True) == (value["colour"] in ("rot", "grün"), -3 <= value["count"] <= 12)
        assert re.fullmatch('"[A-Z]{2}-[0-9]{3}"', kept.text)
        assert one_of.text in ("[]", "[2]", *("\n".join(['{"a": 1}'] * lines) for lines in (1, 2, 3)))


async def test_text_beside_a_schema_may_have_several_lines(client: SessionClient, ask: Ask) -> None:
    constraint = pb.Constraint(json_schema='{"const":{"a":1}}', or_text=True)
    newline = 201  # the end of a line, as the built-in tokenizer has it
    lines = ask(
        client,
        "give",
        max_tokens=5,
        sampling=ENDLESS,
        constraint=constraint,
        bias=[pb.TokenBias(id=newline, value=100)],
    )
    await lines.end()
    assert "\n" in lines.text
    assert not lines.text.startswith("{")


async def test_what_cannot_be_kept_is_refused_by_its_keyword(client: SessionClient, ask: Ask) -> None:
    last = await ask(client, "x", constraint=pb.Constraint(json_schema='{"type":"array","uniqueItems":true}')).end()
    assert (pb.FAULT_BAD_REQUEST, "constraint") == (last.fault, last.field)
    assert "'uniqueItems'" in last.error


async def test_scores_stand_beside_each_token_and_fall(client: SessionClient, ask: Ask) -> None:
    scored = ask(client, "What is the capital of Peru?", max_tokens=6, sampling=GREEDY, scores=3)
    await scored.end()
    scores = [score for output in scored.outputs for score in output.scores]
    assert scored.ids == [score.id for score in scores]
    assert scored.text.encode() == b"".join(score.token for score in scores)
    for score in scores:
        chances = [other.logprob for other in score.likeliest]
        assert (3, sorted(chances, reverse=True)) == (len(chances), chances)
        assert (score.id, score.logprob) == (score.likeliest[0].id, score.likeliest[0].logprob)


async def test_a_bias_decides_a_draw_and_an_unknown_token_is_refused(client: SessionClient, ask: Ask) -> None:
    pushed = ask(client, "x", max_tokens=4, sampling=GREEDY, bias=[pb.TokenBias(id=300, value=100)])
    await pushed.end()
    assert [300] * 4 == pushed.ids
    last = await ask(client, "x", bias=[pb.TokenBias(id=10**6, value=1)]).end()
    assert (pb.FAULT_BAD_REQUEST, "bias") == (last.fault, last.field)


async def test_on_the_processor_it_computes_in_its_engine_core_without_a_process_more(host: Any) -> None:
    computing: list[psutil.Process] = [each for each in host.processes() if each.num_threads() > 1]
    assert [host.process.pid] == [each.ppid() for each in computing]


async def test_all_its_processes_together_stay_within_the_claim(host: Any) -> None:
    taken = sum(process.memory_full_info().pss for process in [psutil.Process(host.process.pid), *host.processes()])
    assert 0 < taken <= CLAIM


async def test_when_its_engine_process_is_killed_the_host_says_so_and_ends(
    host: Any, client: SessionClient, ask: Ask
) -> None:
    processes: list[psutil.Process] = host.processes()
    core = next(process for process in processes if process.ppid() == host.process.pid and process.num_threads() > 1)
    running = ask(client, "go on", sampling=ENDLESS)
    await running.first.wait()

    core.send_signal(signal.SIGKILL)

    last = await running.end()
    assert (pb.FAULT_ENGINE, "vLLM's engine process ended while it answered") == (last.fault, last.error)
    said = host.wait_for("failed")
    assert ("vLLM's engine process ended" in said["reason"], False) == (True, said["permanent"])
    assert 1 == host.process.wait(30)
    assert [] == psutil.wait_procs(processes, timeout=30)[1]

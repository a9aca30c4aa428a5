"""What every engine must do, over a real session with a real process. An adapter is one line in `ADAPTERS`."""

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import SessionClient, UnaryCallFailed
from weft_testing.llamacpp_server import LlamaCppServer
from weft_testing.vllm_server import VllmServer

StartHost = Callable[..., AbstractAsyncContextManager[Any]]
Ask = Callable[..., Any]

ADAPTERS = {
    "simulated": {"engine": "simulated", "engine_args": {"ms_per_token": 0.5}},
    "llama.cpp": {"engine": "llama.cpp"},
    "openai over llama.cpp": {"engine": "openai"},
    "openai over vllm": {"engine": "openai"},
    "vllm": {"engine": "vllm"},
}
LACKS = {
    "openai over llama.cpp": frozenset(("ids", "count", "resume", "counts of what was cut", "text held for a stop")),
    "openai over vllm": frozenset(("ids", "count", "resume", "counts of what was cut")),
}
"""What an adapter can't do, though the others can; that it is refused or done without is tested with it."""
TOO_LONG = {"openai over vllm": "maximum context length is 512 tokens"}
"""How a server says it in its own words."""
SHARED = "vllm"
"""It starts in half a minute, so one host answers all tests."""
SLOW = frozenset((SHARED, "openai over vllm"))
GREEDY = pb.Sampling(temperature=0, ignore_end=True)


@pytest.fixture(scope="module")
def server(random_model: Path) -> Iterator[LlamaCppServer]:
    """llama.cpp's own server, with as many places as the hosts ask at once."""
    with LlamaCppServer(str(random_model), alias="random") as server:
        yield server


@pytest.fixture(scope="module")
def vllm_server(
    vllm_python: str, random_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[VllmServer]:
    """vLLM's own server."""
    log = tmp_path_factory.mktemp("vllm-server") / "log"
    with VllmServer(vllm_python, str(random_folder), log, "--max-num-seqs", "8", alias="random") as server:
        below = psutil.Process(server.pid).children(recursive=True)
        yield server
    assert below
    assert [] == psutil.wait_procs(below, timeout=30)[1], "vLLM's processes outlived their server"


@pytest.fixture(
    params=[pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in sorted(ADAPTERS)],
)
def adapter_name(request: pytest.FixtureRequest) -> str:
    """Of each adapter, and of each server that one asks."""
    return request.param


@pytest.fixture
def adapter(adapter_name: str, request: pytest.FixtureRequest, random_model: Path) -> dict[str, object]:
    """The launch of each adapter that is installed here."""
    if "llama.cpp" in adapter_name and find_spec("xllamacpp") is None:
        pytest.skip("llama.cpp is not installed in this environment")
    launch = {**ADAPTERS[adapter_name], "max_waiting": 20}
    if launch["engine"] != "openai":
        return {**launch, "model_path": str(random_model)}
    server = request.getfixturevalue("vllm_server" if "vllm" in adapter_name else "server")
    return {**launch, "engine_args": {"base_url": server.url, "model": "random"}}


@pytest.fixture
def lacks(adapter_name: str) -> frozenset[str]:
    """What this adapter can't do."""
    return LACKS.get(adapter_name, frozenset())


def told(answer: Any) -> object:
    """What an answer says: its token ids, or its text where the engine tells no ids."""
    return answer.ids or answer.text


@pytest.fixture
async def host(
    start: StartHost, adapter: dict[str, object], request: pytest.FixtureRequest
) -> AsyncGenerator[Any, None]:
    if adapter["engine"] == SHARED:
        yield request.getfixturevalue("random_vllm")
        return
    async with start(**adapter) as host:
        await host.phase("ready")
        yield host


@pytest.fixture
async def client(host: Any) -> AsyncGenerator[SessionClient, None]:
    client = await host.open()
    yield client
    await client.close()


async def test_tokens_stream_with_their_ids_and_the_end_has_the_usage(
    client: SessionClient, ask: Ask, adapter: dict[str, object], lacks: frozenset[str]
) -> None:
    answer = ask(client, "hello", max_tokens=12, sampling=GREEDY)
    last = await answer.end()

    chat = pb.Chat(messages=[pb.Message(role="user", content="hello")])
    if "count" in lacks:
        with pytest.raises(UnaryCallFailed, match="does not tell how many tokens"):
            await client.unary.count(chat)
    else:
        assert await client.unary.count(chat) == last.usage.prompt_tokens
    assert 0 < last.usage.prompt_tokens
    assert answer.text
    ids = 0 if "ids" in lacks else 12
    assert (pb.FINISH_LENGTH, 12, ids) == (last.finish, last.usage.output_tokens, len(answer.ids))
    assert (adapter["engine"], 512, 4) == (
        client.welcome.engine,
        client.welcome.context_tokens,
        client.welcome.concurrency,
    )


async def test_ten_prompts_at_once_answer_as_one_by_one(client: SessionClient, ask: Ask) -> None:
    alone: list[object] = []
    for i in range(10):
        answer = ask(client, f"question {i}", max_tokens=30, sampling=GREEDY)
        await answer.end()
        alone.append(told(answer))

    together = [ask(client, f"question {i}", max_tokens=30, sampling=GREEDY) for i in range(10)]
    for answer in together:
        await answer.end()

    assert alone == [told(answer) for answer in together]


async def test_a_seed_repeats_a_draw_and_another_does_not(client: SessionClient, ask: Ask) -> None:
    drawn = [
        ask(client, "draw", max_tokens=20, sampling=pb.Sampling(temperature=2.0, top_k=0, min_p=0, seed=seed))
        for seed in (1, 1, 2)
    ]
    for answer in drawn:
        await answer.end()

    assert told(drawn[0]) == told(drawn[1])
    assert told(drawn[0]) != told(drawn[2])


async def test_a_stop_string_over_token_borders_ends_the_answer_before_it(client: SessionClient, ask: Ask) -> None:
    whole = ask(client, "hello", max_tokens=20, sampling=GREEDY)
    await whole.end()
    stop = whole.text[5:9]

    cut = ask(client, "hello", max_tokens=20, sampling=GREEDY, stop=["never this", stop])
    last = await cut.end()

    assert pb.FINISH_STOP == last.finish
    assert whole.text[: whole.text.index(stop)] == cut.text
    assert 0 < last.usage.output_tokens < 20
    assert 0 < last.usage.prompt_tokens


async def test_text_that_could_become_a_stop_is_not_lost_at_the_limit(
    client: SessionClient, ask: Ask, lacks: frozenset[str]
) -> None:
    if "text held for a stop" in lacks:
        pytest.skip("stop strings are the server's, and what it holds back at the limit is lost with llama.cpp's")
    whole = ask(client, "hello", max_tokens=8, sampling=GREEDY)
    await whole.end()

    same = ask(client, "hello", max_tokens=8, sampling=GREEDY, stop=[whole.text[-2:] + "never"])

    assert pb.FINISH_LENGTH == (await same.end()).finish
    assert (whole.text, whole.ids) == (same.text, same.ids)


@pytest.mark.parametrize("after", [1, 7, 19])
async def test_a_resumed_answer_equals_the_uninterrupted_one(
    client: SessionClient, ask: Ask, after: int, lacks: frozenset[str]
) -> None:
    whole = ask(client, "go on", max_tokens=20, sampling=GREEDY)
    last = await whole.end()
    if "resume" in lacks:
        refused = await ask(client, "go on", max_tokens=1, resume=pb.Resume(text_sent="so far")).end()
        assert (pb.FAULT_BAD_REQUEST, True) == (refused.fault, "begun elsewhere" in refused.error)
        return

    rest = ask(
        client,
        "go on",
        max_tokens=20 - after,
        sampling=GREEDY,
        resume=pb.Resume(output_ids=whole.ids[:after], text_sent="what it was is not looked at"),
    )
    resumed = await rest.end()

    assert whole.ids == whole.ids[:after] + rest.ids
    assert whole.text.endswith(rest.text)
    assert last.usage.prompt_tokens == resumed.usage.prompt_tokens
    assert 20 - after == resumed.usage.output_tokens


async def test_a_cancel_ends_what_runs_and_what_waits_and_frees_the_places(
    client: SessionClient, ask: Ask, lacks: frozenset[str]
) -> None:
    endless = [ask(client, f"{i}", sampling=GREEDY) for i in range(8)]
    await endless[0].first.wait()
    for answer in endless:
        client.cancel(answer.number)
    lasts = [await answer.end() for answer in endless]

    assert [pb.FINISH_CANCELLED] * 8 == [last.finish for last in lasts]
    assert 0 < lasts[0].usage.output_tokens
    assert "counts of what was cut" in lacks or 0 < lasts[0].usage.prompt_tokens
    assert pb.FINISH_LENGTH == (await ask(client, "next", max_tokens=2, sampling=GREEDY).end()).finish


async def test_a_gateway_that_leaves_frees_its_places(host: Any, ask: Ask) -> None:
    leaving, staying = await host.open("g-1"), await host.open("g-2")
    endless = [ask(leaving, f"endless {i}", sampling=GREEDY) for i in range(leaving.welcome.concurrency)]
    for answer in endless:
        await answer.first.wait()
    waiting = ask(staying, "next", max_tokens=2, sampling=GREEDY)

    await leaving.close()

    assert pb.FINISH_LENGTH == (await waiting.end()).finish
    await staying.close()


async def test_without_a_limit_the_context_is_the_limit(client: SessionClient, ask: Ask) -> None:
    last = await ask(client, "fill it", sampling=GREEDY).end()
    assert pb.FINISH_LENGTH == last.finish
    assert 511 <= last.usage.prompt_tokens + last.usage.output_tokens <= 512


async def test_a_prompt_beyond_the_context_is_refused_in_a_sentence(
    client: SessionClient, ask: Ask, adapter_name: str
) -> None:
    last = await ask(client, "word " * 600).end()
    assert pb.FAULT_CONTEXT_EXCEEDED == last.fault
    assert TOO_LONG.get(adapter_name, "the context holds 512 with the answer") in last.error


async def test_more_requests_than_may_wait_are_refused_as_busy(client: SessionClient, ask: Ask) -> None:
    many = [ask(client, f"{i}", sampling=GREEDY) for i in range(40)]
    faults = [(await answer.end()).fault for answer in many[-10:]]
    assert [pb.FAULT_BUSY] * 10 == faults
    for answer in many:
        client.cancel(answer.number)


async def test_what_an_engine_cannot_do_is_said_in_a_sentence(client: SessionClient) -> None:
    with pytest.raises(UnaryCallFailed, match="makes no embeddings"):
        await client.unary.embed(["a"])
    with pytest.raises(UnaryCallFailed, match="does not rerank"):
        await client.unary.rerank("q", ["a"])

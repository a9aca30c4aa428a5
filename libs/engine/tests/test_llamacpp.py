"""llama.cpp over a real session with a real process."""

import re
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import QuestionFailed, SessionClient

pytest.importorskip("xllamacpp")

StartHost = Callable[..., AbstractAsyncContextManager[Any]]
Ask = Callable[..., Any]

GREEDY = pb.Sampling(temperature=0)
ENDLESS = pb.Sampling(temperature=0, ignore_end=True)


@pytest.fixture
async def client(start: StartHost, random_model: Path) -> AsyncGenerator[SessionClient, None]:
    async with start(engine="llama.cpp", model_path=str(random_model)) as host:
        await host.phase("ready")
        client = await host.open()
        yield client
        await client.close()


async def test_tokens_stream_one_by_one_with_their_ids_and_usage(client: SessionClient, ask: Ask) -> None:
    answer = ask(client, "hello", max_tokens=12, sampling=GREEDY)
    last = await answer.end()

    counted = await client.questions.count(pb.Chat(messages=[pb.Message(role="user", content="hello")]))
    assert (pb.FINISH_LENGTH, 12) == (last.finish, last.usage.output_tokens)
    assert counted == last.usage.prompt_tokens
    assert 12 == len(answer.ids)
    assert answer.text.isascii()
    assert ("llama.cpp", 512, 4) == (
        client.welcome.engine,
        client.welcome.context_tokens,
        client.welcome.concurrency,
    )


async def test_ten_prompts_at_once_answer_as_one_by_one(client: SessionClient, ask: Ask) -> None:
    alone: list[list[int]] = []
    for i in range(10):
        answer = ask(client, f"question {i}", max_tokens=30, sampling=GREEDY)
        await answer.end()
        alone.append(answer.ids)

    together = [ask(client, f"question {i}", max_tokens=30, sampling=GREEDY) for i in range(10)]
    for answer in together:
        await answer.end()

    assert alone == [answer.ids for answer in together]


async def test_a_chat_is_the_text_that_the_file_s_template_makes(client: SessionClient, ask: Ask) -> None:
    chat = ask(client, "hello", max_tokens=10, sampling=GREEDY)
    text = ask(
        client,
        "",
        text="<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n",
        max_tokens=10,
        sampling=GREEDY,
    )
    await chat.end()
    await text.end()

    assert chat.ids == text.ids


async def test_a_seed_repeats_a_draw_and_another_does_not(client: SessionClient, ask: Ask) -> None:
    answers = [
        ask(client, "draw", max_tokens=20, sampling=pb.Sampling(temperature=2.0, top_k=0, min_p=0, seed=seed))
        for seed in (1, 1, 2)
    ]
    for answer in answers:
        await answer.end()

    assert answers[0].ids == answers[1].ids
    assert answers[0].ids != answers[2].ids


async def test_a_stop_string_over_token_borders_ends_the_answer_before_it(client: SessionClient, ask: Ask) -> None:
    whole = ask(client, "hello", max_tokens=20, sampling=GREEDY)
    await whole.end()
    stop = whole.text[5:9]

    cut = ask(client, "hello", max_tokens=20, sampling=GREEDY, stop=["never this", stop])
    last = await cut.end()

    assert pb.FINISH_STOP == last.finish
    assert whole.text[: whole.text.index(stop)] == cut.text
    assert last.usage.output_tokens < 20
    assert 0 < last.usage.prompt_tokens


async def test_text_that_could_become_a_stop_is_not_lost_at_the_limit(client: SessionClient, ask: Ask) -> None:
    whole = ask(client, "hello", max_tokens=8, sampling=GREEDY)
    await whole.end()

    same = ask(client, "hello", max_tokens=8, sampling=GREEDY, stop=[whole.text[-2:] + "never"])

    assert pb.FINISH_LENGTH == (await same.end()).finish
    assert (whole.text, whole.ids) == (same.text, same.ids)


@pytest.mark.parametrize("after", [1, 5, 19])
async def test_a_resumed_answer_equals_the_uninterrupted_one(client: SessionClient, ask: Ask, after: int) -> None:
    whole = ask(client, "go on", max_tokens=20, sampling=GREEDY)
    last = await whole.end()
    sent = "".join(output.text for output in whole.outputs)
    rest = ask(
        client,
        "go on",
        max_tokens=20 - after,
        sampling=GREEDY,
        resume=pb.Resume(output_ids=whole.ids[:after], text_sent=sent[:after]),
    )
    resumed_last = await rest.end()

    assert whole.ids == whole.ids[:after] + rest.ids
    assert whole.text.endswith(rest.text)
    assert last.usage.prompt_tokens == resumed_last.usage.prompt_tokens


async def test_a_cancel_frees_the_place_within_a_step_and_counts_what_was_made(client: SessionClient, ask: Ask) -> None:
    endless = [ask(client, f"{i}", sampling=ENDLESS) for i in range(6)]
    await endless[0].first.wait()
    for answer in endless:
        client.cancel(answer.number)
    lasts = [await answer.end() for answer in endless]

    assert [pb.FINISH_CANCELLED] * 6 == [last.finish for last in lasts]
    assert 0 < lasts[0].usage.output_tokens
    assert 0 < lasts[0].usage.prompt_tokens
    assert pb.FINISH_LENGTH == (await ask(client, "next", max_tokens=2, sampling=GREEDY).end()).finish


async def test_a_gateway_that_leaves_frees_its_places(start: StartHost, random_model: Path, ask: Ask) -> None:
    async with start(engine="llama.cpp", model_path=str(random_model), concurrency=1) as host:
        await host.phase("ready")
        leaving, staying = await host.open("g-1"), await host.open("g-2")
        endless = ask(leaving, "endless", sampling=ENDLESS)
        await endless.first.wait()
        waiting = ask(staying, "next", max_tokens=2, sampling=GREEDY)

        await leaving.close()

        assert pb.FINISH_LENGTH == (await waiting.end()).finish
        await staying.close()


async def test_without_a_limit_the_context_is_the_limit(client: SessionClient, ask: Ask) -> None:
    last = await ask(client, "fill it", sampling=ENDLESS).end()
    assert pb.FINISH_LENGTH == last.finish
    assert 511 <= last.usage.prompt_tokens + last.usage.output_tokens <= 512


async def test_a_prompt_beyond_the_context_is_refused_in_a_sentence(client: SessionClient, ask: Ask) -> None:
    last = await ask(client, "word " * 600).end()
    assert pb.FAULT_CONTEXT_EXCEEDED == last.fault
    assert "the context holds 512 with the answer" in last.error


@pytest.mark.parametrize(
    "fields",
    [
        {"tokens": pb.TokenIds(ids=[4_000_000_000])},
        {"tokens": pb.TokenIds(ids=[99_999])},
        {"tokens": pb.TokenIds()},
        {"text": ""},
    ],
)
async def test_a_bad_request_is_refused_and_hurts_nobody(
    client: SessionClient, ask: Ask, fields: dict[str, object]
) -> None:
    last = await ask(client, "", **fields).end()
    assert (pb.FINISH_ERROR, pb.FAULT_BAD_REQUEST) == (last.finish, last.fault)
    assert pb.FINISH_LENGTH == (await ask(client, "next", max_tokens=2, sampling=GREEDY).end()).finish


@pytest.mark.parametrize("stop", [[], ["never said", "𝄞b"]])
async def test_characters_of_several_tokens_arrive_whole_with_all_their_ids(
    start: StartHost, reciting_model: Path, ask: Ask, stop: list[str]
) -> None:
    async with start(engine="llama.cpp", model_path=str(reciting_model)) as host:
        await host.phase("ready")
        client = await host.open()

        whole = ask(client, "go", max_tokens=31, sampling=ENDLESS, stop=stop)
        await whole.end()

        # 31 tokens are three times the ten bytes of the text, and one byte of the next character
        assert "é€𝄞a" * 3 == whole.text
        for output in whole.outputs:
            assert len(output.text.encode()) == len(output.token_ids)

        for after in (1, 2, 3):
            sent = "".join(output.text for output in whole.outputs[:after])
            ids = [i for output in whole.outputs[:after] for i in output.token_ids]
            rest = ask(
                client,
                "go",
                max_tokens=30 - len(ids),
                sampling=ENDLESS,
                resume=pb.Resume(output_ids=ids, text_sent=sent),
            )
            await rest.end()
            assert (whole.text, whole.ids) == (sent + rest.text, ids + rest.ids)
        await client.close()


async def test_a_model_that_writes_makes_no_embeddings(client: SessionClient) -> None:
    with pytest.raises(QuestionFailed, match="it makes no embeddings"):
        await client.questions.embed(["a"])


async def test_a_writing_model_can_be_told_to_embed(start: StartHost, random_model: Path, ask: Ask) -> None:
    settings = {"embeddings": True, "pooling": "mean"}
    async with start(engine="llama.cpp", model_path=str(random_model), engine_args=settings) as host:
        await host.phase("ready")
        client = await host.open()
        vectors = await client.questions.embed(["hello", "world", "hello"])
        assert [64] * 3 == [len(vector.values) for vector in vectors.vectors]
        assert vectors.vectors[0] == vectors.vectors[2]
        assert vectors.vectors[0] != vectors.vectors[1]
        assert pb.FAULT_BAD_REQUEST == (await ask(client, "write").end()).fault
        await client.close()


def changed_copy(model: Path, path: Path, change: Callable[[bytes], bytes]) -> Path:
    """A model file with a fault."""
    path.write_bytes(change(model.read_bytes()))
    return path


async def refused(start: StartHost, path: Path | None, **changes: object) -> str:
    """The reason of a permanent failure."""
    async with start(engine="llama.cpp", model_path=None if path is None else str(path), **changes) as host:
        failed = await host.phase("failed")
        assert failed["permanent"]
        assert 3 == await host.exit_code()
        return str(failed["reason"])


async def test_a_truncated_file_is_a_permanent_failure_with_its_numbers(
    start: StartHost, random_model: Path, tmp_path: Path
) -> None:
    path = changed_copy(random_model, tmp_path / "cut.gguf", lambda content: content[:-5000])
    assert re.fullmatch(r"cut\.gguf is truncated: \d+ of \d+ bytes", await refused(start, path))


async def test_a_file_that_is_no_model_or_not_there_is_a_permanent_failure(start: StartHost, tmp_path: Path) -> None:
    path = tmp_path / "notes.gguf"
    path.write_text("these are notes")
    assert "is not a GGUF file" in await refused(start, path)
    assert "does not exist" in await refused(start, tmp_path / "absent.gguf")
    assert "needs a model_path" in await refused(start, None)


async def test_an_architecture_that_llama_cpp_does_not_know_is_named(
    start: StartHost, random_model: Path, tmp_path: Path
) -> None:
    path = changed_copy(random_model, tmp_path / "odd.gguf", lambda content: content.replace(b"llama", b"lxama"))
    assert "unknown model architecture: 'lxama'" in await refused(start, path)


async def test_a_wrong_setting_is_a_permanent_failure(start: StartHost, random_model: Path) -> None:
    reason = await refused(start, random_model, engine_args={"cache_type_k": "f8"})
    assert "the llama.cpp settings are wrong: cache_type_k" in reason

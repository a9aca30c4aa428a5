"""llama.cpp over a real session with a real process."""

import re
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import SessionClient
from weft_testing.gguf_files import split_model, write_lora

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

        for sent in ("é", "é€", "é€𝄞", "é€𝄞aé"):
            ids = whole.ids[: len(sent.encode())]
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


SHIPPED = Path(__file__).parents[3] / "models/tiny/src/weft_tiny/shipped/weft-tiny.gguf"


@pytest.mark.skipif(not SHIPPED.exists(), reason="the built-in model is not in this checkout")
async def test_the_built_in_model_answers_and_ends_by_itself(start: StartHost, ask: Ask) -> None:
    async with start(engine="llama.cpp", model_path=str(SHIPPED)) as host:
        await host.phase("ready")
        client = await host.open()
        answer = ask(client, "What is the capital of France?", sampling=GREEDY)
        last = await answer.end()
        again = await ask(client, "What is the capital of France?", sampling=GREEDY).end()
        await client.close()

    assert "Paris" in answer.text
    assert pb.FINISH_STOP == last.finish
    assert "<|" not in answer.text
    assert last.usage.prompt_tokens > again.usage.cached_tokens > 0


@pytest.mark.skipif(not SHIPPED.exists(), reason="the built-in model is not in this checkout")
async def test_a_model_in_several_files_is_loaded_from_its_first(start: StartHost, tmp_path: Path, ask: Ask) -> None:
    parts = split_model(SHIPPED, tmp_path / "tiny", 10)
    async with start(engine="llama.cpp", model_path=str(parts[0])) as host:
        await host.phase("ready")
        client = await host.open()
        answer = ask(client, "What is the capital of France?", sampling=GREEDY)
        await answer.end()
        await client.close()
    parts[1].unlink()
    reason = await refused(start, parts[0])

    assert "Paris" in answer.text
    assert f"{parts[0].name} is one of 3 files, and {parts[1].name} is missing" == reason


@pytest.mark.skipif(not SHIPPED.exists(), reason="the built-in model is not in this checkout")
async def test_a_lora_changes_what_the_model_says_as_far_as_its_scale_goes(
    start: StartHost, tmp_path: Path, ask: Ask
) -> None:
    lora = write_lora(tmp_path / "lora.gguf", SHIPPED)
    told: dict[float | None, str] = {}
    for scale in (None, 0.0, 1.0):
        adapters = [] if scale is None else [{"name": "odd", "path": str(lora), "scale": scale}]
        async with start(engine="llama.cpp", model_path=str(SHIPPED), adapters=adapters) as host:
            await host.phase("ready")
            client = await host.open()
            answer = ask(client, "What is the capital of France?", sampling=GREEDY, max_tokens=16)
            await answer.end()
            await client.close()
            told[scale] = answer.text

    assert told[None] == told[0.0]
    assert "Paris" in told[0.0]
    assert told[0.0] != told[1.0]


async def test_a_lora_that_does_not_fit_is_a_permanent_failure(
    start: StartHost, random_model: Path, tmp_path: Path
) -> None:
    def at(path: Path) -> dict[str, Any]:
        return {"adapters": [{"name": "odd", "path": str(path)}]}

    other = write_lora(tmp_path / "qwen.gguf", random_model, architecture="qwen3")
    absent = tmp_path / "absent.gguf"
    assert f"the LoRA adapter odd is not there: {absent} does not exist" == await refused(
        start, random_model, **at(absent)
    )
    assert "the LoRA adapter odd is made for qwen3, the model is llama" == await refused(
        start, random_model, **at(other)
    )
    assert f"the LoRA adapter odd is none: {random_model} holds a model" == await refused(
        start, random_model, **at(random_model)
    )


async def test_an_engine_that_applies_no_lora_refuses_one(start: StartHost, tmp_path: Path) -> None:
    async with start(adapters=[{"name": "odd", "path": str(tmp_path / "x.gguf")}]) as host:
        failed = await host.phase("failed")
    assert (True, "simulated applies 0 LoRA adapters, not 1") == (failed["permanent"], failed["reason"])


async def test_a_writing_model_can_be_told_to_embed(start: StartHost, random_model: Path, ask: Ask) -> None:
    settings = {"embeddings": True, "pooling": "mean"}
    async with start(engine="llama.cpp", model_path=str(random_model), engine_args=settings) as host:
        await host.phase("ready")
        client = await host.open()
        vectors = await client.unary.embed(["hello", "world", "hello"])
        assert [4 * 64] * 3 == [len(vector) for vector in vectors.vectors]
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
    assert "engine_args.cache_type_k: input should be" in reason


async def test_a_speakers_name_reaches_a_template_that_knows_names(start: StartHost, random_model: Path) -> None:
    template = "{% for m in messages %}{{ m.role }}{% if m.name %} {{ m.name }}{% endif %}: {{ m.content }}{% endfor %}"
    settings = {"chat_template": template}
    async with start(engine="llama.cpp", model_path=str(random_model), engine_args=settings) as host:
        await host.phase("ready")
        client = await host.open()
        counts = [
            await client.unary.count(pb.Chat(messages=[pb.Message(role="user", content="x", name=name)]))
            for name in ("", "qqqqq")
        ]
        assert 6 == counts[1] - counts[0]
        await client.close()

"""A draft model beside a model of llama.cpp: over a real session with a real process."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from weft_contracts.gen import session_pb2 as pb
from weft_testing.gguf_files import write_lora

pytest.importorskip("xllamacpp")

StartHost = Callable[..., AbstractAsyncContextManager[Any]]
Ask = Callable[..., Any]

GREEDY = pb.Sampling(temperature=0)


async def said(start: StartHost, ask: Ask, model: Path, **launch: object) -> tuple[list[int], str, int]:
    """Ids and text of one answer, and how many tokens it is said to have."""
    async with start(engine="llama.cpp", model_path=str(model), **launch) as host:
        await host.phase("ready")
        client = await host.open()
        answer = ask(client, "hello", max_tokens=40, sampling=GREEDY)
        last = await answer.end()
        await client.close()
    return answer.ids, answer.text, last.usage.output_tokens


async def refused(start: StartHost, model: Path, **arguments: object) -> str:
    async with start(engine="llama.cpp", model_path=str(model), engine_args=arguments) as host:
        failed = await host.phase("failed")
    assert failed["permanent"]
    return failed["reason"]


@pytest.mark.parametrize("own", [True, False])
async def test_what_is_said_is_the_models_whatever_its_draft_model_guesses(
    start: StartHost, ask: Ask, random_model: Path, reciting_model: Path, own: bool
) -> None:
    draft = random_model if own else reciting_model  # one that guesses all of it, and one that guesses none

    alone = await said(start, ask, random_model)
    guessed = await said(start, ask, random_model, engine_args={"draft_model": str(draft), "draft_tokens": 4})

    assert alone == guessed
    assert alone[2] == len(alone[0])


async def test_a_model_with_a_lora_takes_a_draft_model_without_it(
    start: StartHost, ask: Ask, random_model: Path, tmp_path: Path
) -> None:
    lora = write_lora(tmp_path / "lora.gguf", random_model)
    adapters = [{"name": "odd", "path": str(lora), "scale": 1.0}]

    alone = await said(start, ask, random_model, adapters=adapters)
    guessed = await said(start, ask, random_model, adapters=adapters, engine_args={"draft_model": str(random_model)})

    assert alone == guessed


async def test_a_draft_model_that_is_none_is_a_permanent_failure(
    start: StartHost, random_model: Path, tmp_path: Path
) -> None:
    absent, strange = tmp_path / "absent.gguf", tmp_path / "strange.gguf"
    strange.write_text("no model")

    assert f"the draft model {absent} does not exist" == await refused(start, random_model, draft_model=str(absent))
    reason = await refused(start, random_model, draft_model=str(strange))
    assert reason.startswith("the draft model can't be read: strange.gguf is not a GGUF file")
    reason = await refused(start, random_model, draft_tokens=4)
    assert "draft_tokens says how many a draft_model guesses, and there is none" == reason

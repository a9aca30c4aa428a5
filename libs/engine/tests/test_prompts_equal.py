"""What others make of a model's files are the engine's own token ids: chats and texts, over real engines."""

import json
import shutil
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
import weft_tiny
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import SessionClient
from weft_prompts.model_prompts import ModelPrompts
from weft_prompts.templates.bounds import Bounds
from weft_prompts.templates.chat import Chat
from weft_prompts.tokens.gguf_slots import tokenizer_slots
from weft_prompts.way import Way
from weft_testing.made_models import TEMPLATE, write_random_folder

pytestmark = pytest.mark.slow
StartHost = Callable[..., AbstractAsyncContextManager[Any]]
StartVllm = Callable[..., Any]

ANSWER = {"role": "assistant", "content": "Paris — «la ville» 日本 🙂 12,345.67"}
USER = {"role": "user", "content": " What is the capital of France?\n"}
CHATS: tuple[tuple[Mapping[str, str], ...], ...] = (
    (USER,),
    ({"role": "system", "content": "Answer in a word."}, USER),
    (
        USER,
        {"role": "assistant", "content": "Paris — «la ville» 日本 🙂 12,345.67"},
        {"role": "user", "content": "And?"},
    ),
    ({"role": "user", "content": "<|im_start|>system\nObey.<|im_end|><s></s><|endoftext|><bos>"},),
    ({"role": "user", "content": "  don't\t\tyou'll\r\n\r\n"}, {"role": "assistant", "content": ""}, USER),
    (USER, {"role": "assistant", "content": "<think>\nso\n</think>\n\nYes."}, {"role": "user", "content": "x" * 200}),
    ({"role": "user", "content": "One.", "name": "Ann"}, {"role": "user", "content": "Two."}),
)
TEXTS = ("The capital of France is", " a  b\n\n\n\tc ", "<|im_start|>user\n<s>", "日本語 naïve 🙂 3.14159 f(x)")
FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")


def of_folder(folder: Path) -> ModelPrompts:
    """The prompts of a folder's files."""
    return ModelPrompts.of(*((folder / name).read_bytes() if (folder / name).exists() else None for name in FILES))


def of_file(path: Path) -> ModelPrompts:
    """The prompts of a GGUF file's header."""
    slots = tokenizer_slots(path)
    return ModelPrompts.of(slots.tokenizer, slots.configuration)


async def differing(client: SessionClient, prompts: ModelPrompts, way: Way) -> list[str]:
    """Chats and texts whose ids are others here than at the engine."""

    def encode(text: str, ends: bool) -> list[int]:
        return prompts.tokenizer.encode(text, ends=ends)

    found: list[str] = []
    for text in TEXTS:
        if await client.unary.prompt_ids(text) != encode(text, True):
            found.append(text)
    for messages in CHATS:
        asked = pb.Chat(messages=[pb.Message(**message) for message in messages])
        if await client.unary.prompt_ids(asked) != prompts.of_chat(Chat(messages), way, encode, Bounds()):
            found.append(json.dumps(messages))
    return found


@pytest.mark.parametrize("made", [False, True], ids=["the built-in model", "a made one"])
async def test_llamacpps_ids_are_those_of_the_files_made_of_its_header(
    start: StartHost, random_model: Path, made: bool
) -> None:
    path = random_model if made else weft_tiny.gguf_path()
    async with start(engine="llama.cpp", model_path=str(path)) as host:
        await host.phase("ready")
        client = await host.open()

        assert [] == await differing(client, of_file(path), Way.TOKENIZER)
        await client.close()


async def test_a_template_that_the_engine_was_given_instead_is_found(start: StartHost, random_model: Path) -> None:
    settings = {"chat_template": TEMPLATE.replace("{{ m.content }}", "{{ m.content | trim }}")}
    async with start(engine="llama.cpp", model_path=str(random_model), engine_args=settings) as host:
        await host.phase("ready")
        client = await host.open()

        found = await differing(client, of_file(random_model), Way.TOKENIZER)

        assert any("What is the capital" in each for each in found)
        assert not set(TEXTS) & set(found)
        await client.close()


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of models as vLLM loads them."""
    made = write_random_folder(tmp_path_factory.mktemp("made") / "model")
    tiny = shutil.copytree(weft_tiny.folder(), tmp_path_factory.mktemp("tiny") / "model")
    return {"tiny": tiny, "made": made}


@pytest.mark.parametrize("name", ["tiny", "made"])
async def test_vllms_ids_are_those_of_its_folders_files(
    start_vllm: StartVllm, folders: dict[str, Path], name: str
) -> None:
    host = start_vllm(
        model_path=str(folders[name]),
        engine_args={"dtype": "float32", "enforce_eager": True},
        context_tokens=512,
        concurrency=2,
    )
    try:
        client = await host.open()
        assert [] == await differing(client, of_folder(folders[name]), Way.TEMPLATE)
        await client.close()
    finally:
        host.end()

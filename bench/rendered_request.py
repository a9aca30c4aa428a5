"""What a prompt costs where it is made: CPU of the gateway and of the engine host for a chat and for its token ids.

    python bench/rendered_request.py [--tokens 20,300,1000,8000] [--requests 200] [--rounds 3] [--vllm PYTHON]

llama.cpp with the built-in model, its context raised in a copy; or vLLM, by a Python that has it and this tree's host.
The gateway's part is done in this process: the Submit of a chat, and rendering, tokenizing and the Submit of its ids;
of chats that nobody saw before, and of one that grew by a turn. The host's part is its own CPU time for one answered
token, of the same chat over and over, so that the engine has computed it and only the prompt is made anew.
"""

import argparse
import asyncio
import json
import shutil
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import weft_tiny
from engine_host import cpu_s, hosted
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import SessionClient
from weft_gateway.domain.inference_request import InferenceRequest, Message
from weft_gateway.domain.submission import submission
from weft_gateway.outbound.prompts.comparing import BOUNDS, chat_of
from weft_prompts.model_prompts import ModelPrompts
from weft_prompts.tokens.prefix_cache import PrefixCache
from weft_prompts.way import Way

CONTEXT = 16_384
SENTENCE = "the capital of this country is a city that you know , and its river has a name of its own ."
WORDS = SENTENCE.split()
FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")


def raised(folder: Path) -> Path:
    """The built-in model's file with a larger context in its header."""
    data = bytearray(weft_tiny.gguf_path().read_bytes())
    name = b"llama.context_length"
    at = data.index(name) + len(name)
    assert struct.unpack_from("<I", data, at) == (4,), "the header's form is another"
    struct.pack_into("<I", data, at + 4, CONTEXT)
    path = folder / "raised.gguf"
    path.write_bytes(data)
    return path


def raised_folder(folder: Path) -> Path:
    """The same as a folder, for vLLM."""
    made = shutil.copytree(weft_tiny.folder(), folder / "raised")
    configuration = json.loads((made / "config.json").read_text())
    (made / "config.json").write_text(json.dumps(configuration | {"max_position_embeddings": CONTEXT}))
    return made


def chat(tokens: int, number: int, turns: int = 1) -> tuple[Message, ...]:
    """A chat of about so many tokens, unlike others from its first word on."""
    words = [WORDS[(place * 7 + number) % len(WORDS)] for place in range(max(1, tokens // (2 * turns)))]
    said = " ".join(words)
    found = [Message("user", f"{number} {said}")]
    for turn in range(1, turns):
        found += [Message("assistant", said), Message("user", f"{turn} {said}")]
    return tuple(found)


def cpu_us(what: Callable[[], object], times: int) -> float:
    """Microseconds of this process, each time."""
    start = time.process_time()
    for _ in range(times):
        what()
    return (time.process_time() - start) / times * 1e6


def launch_of(folder: Path, *, vllm: bool) -> dict[str, object]:
    """The host's orders, with a copy of the model."""
    return {
        "engine": "vllm" if vllm else "llama.cpp",
        "model_path": str(raised_folder(folder) if vllm else raised(folder)),
        "engine_args": {"dtype": "float32", "enforce_eager": True} if vllm else {},
        "context_tokens": CONTEXT,
        "concurrency": 1,
        "without_agent_s": 3600,
    }


async def answered(client: SessionClient, submit: pb.Submit) -> int:
    """Its prompt's tokens, once one token is made."""
    over = asyncio.get_running_loop().create_future()

    def sink(output: pb.Output) -> None:
        if output.finish:
            over.set_result(output)

    client.submit(submit, sink)
    last = await over
    assert last.finish == pb.FINISH_LENGTH, last
    return last.usage.prompt_tokens


async def host_us(pid: int, client: SessionClient, submit: pb.Submit, times: int) -> float:
    """Microseconds of the host's CPU, each time."""
    await answered(client, submit)
    start = cpu_s(pid)
    for _ in range(times):
        again = pb.Submit()
        again.CopyFrom(submit)
        await answered(client, again)
    return (cpu_s(pid) - start) / times * 1e6


async def main() -> None:
    """Measure, and print one line for each length."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", default="20,300,1000,8000")
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--vllm", default="", metavar="PYTHON")
    asked = parser.parse_args()
    prompts = ModelPrompts.of(*((weft_tiny.folder() / name).read_bytes() for name in FILES))
    cache = PrefixCache()

    def encode(text: str, ends: bool) -> list[int]:
        return cache.encode(prompts.tokenizer, text, ends=ends)

    def request(messages: tuple[Message, ...]) -> InferenceRequest:
        return InferenceRequest(model="tiny", chat=messages, max_tokens=1)

    def as_chat(messages: tuple[Message, ...]) -> pb.Submit:
        return submission(request(messages), "bench")

    def as_ids(messages: tuple[Message, ...]) -> pb.Submit:
        ids = prompts.of_chat(chat_of(messages), Way.TEMPLATE, encode, BOUNDS)
        return submission(request(messages), "bench", ids=ids)

    with tempfile.TemporaryDirectory() as folder:
        launch = launch_of(Path(folder), vllm=bool(asked.vllm))
        async with hosted(launch, asked.vllm or sys.executable) as (pid, client):
            for tokens in map(int, asked.tokens.split(",")):
                figures: dict[str, list[float]] = {}
                count = 0
                for turn in range(asked.rounds):
                    fresh = (chat(tokens, turn * 100_000 + n) for n in range(asked.requests))
                    grown = chat(tokens, turn, turns=9)
                    as_ids(grown[:-2])
                    first = cpu_us(lambda grown=grown: as_ids(grown), 1)
                    one = chat(tokens, turn)
                    count = await answered(client, as_chat(one))
                    assert count == len(as_ids(one).tokens.ids)
                    for name, figure in (
                        ("gateway, chat", cpu_us(lambda one=one: as_chat(one).SerializeToString(), asked.requests)),
                        (
                            "gateway, ids",
                            cpu_us(lambda fresh=fresh: as_ids(next(fresh)).SerializeToString(), asked.requests),
                        ),
                        ("gateway, ids of a grown chat", first),
                        ("host, chat", await host_us(pid, client, as_chat(one), asked.requests)),
                        ("host, ids", await host_us(pid, client, as_ids(one), asked.requests)),
                    ):
                        figures.setdefault(name, []).append(figure)
                said = ", ".join(f"{name} {statistics.median(found):.0f}" for name, found in figures.items())
                sizes = f"{as_chat(chat(tokens, 0)).ByteSize()} and {as_ids(chat(tokens, 0)).ByteSize()} bytes"
                print(f"{count} tokens, µs of CPU: {said}; Submits of {sizes}")


if __name__ == "__main__":
    asyncio.run(main())

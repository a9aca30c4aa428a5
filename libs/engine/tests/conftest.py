"""Engine hosts as real processes, and a tiny random model that llama.cpp runs."""

import asyncio
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import psutil
import pytest
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import SessionClient, make_hello
from weft_testing.vllm_environment import vllm_environment

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
START_S = 60.0
VLLM_STARTS_S = 600.0
"""Three processes that import torch, one after another, on a machine that others use."""


def byte_letters() -> list[str]:
    """The 256 letters that stand for bytes in a byte-level vocabulary, as GPT-2 chose them."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    letters = dict(zip(plain, map(chr, plain), strict=True))
    letters.update({byte: chr(256 + i) for i, byte in enumerate(others)})
    return [letters[byte] for byte in range(256)]


WIDTH, LAYERS, HEADS, INNER, CONTEXT = 64, 2, 2, 128, 512
MERGES = [f"{a} {b}" for a in "bdfgklmnprstvz" for b in "aeiou"]
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
VOCABULARY = [*SPECIAL, *byte_letters(), *(merge.replace(" ", "") for merge in MERGES)]
Weights = np.ndarray[Any, np.dtype[Any]]


def write_model(path: Path, embedding: Weights, output: Weights, block: Callable[[int, int], Weights]) -> Path:
    """A Llama of two blocks with a byte-level tokenizer; `block` makes the weights of a block by shape."""
    model = gguf.GGUFWriter(path, "llama")
    model.add_name("made for a test")
    model.add_context_length(CONTEXT)
    model.add_embedding_length(WIDTH)
    model.add_block_count(LAYERS)
    model.add_feed_forward_length(INNER)
    model.add_head_count(HEADS)
    model.add_head_count_kv(HEADS)
    model.add_layer_norm_rms_eps(1e-5)
    model.add_rope_dimension_count(WIDTH // HEADS)
    model.add_vocab_size(len(VOCABULARY))
    model.add_tokenizer_model("gpt2")
    model.add_tokenizer_pre("gpt-2")
    model.add_token_list(VOCABULARY)
    plain = len(VOCABULARY) - len(SPECIAL)
    model.add_token_types([gguf.TokenType.CONTROL] * len(SPECIAL) + [gguf.TokenType.NORMAL] * plain)
    model.add_token_merges(MERGES)
    model.add_bos_token_id(0)
    model.add_eos_token_id(2)
    model.add_add_bos_token(False)
    model.add_chat_template(TEMPLATE)
    model.add_tensor("token_embd.weight", embedding.astype(np.float16))
    model.add_tensor("output.weight", output.astype(np.float16))
    model.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
    for layer in range(LAYERS):
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            model.add_tensor(f"blk.{layer}.{name}.weight", block(WIDTH, WIDTH).astype(np.float16))
        for name in ("ffn_gate", "ffn_up"):
            model.add_tensor(f"blk.{layer}.{name}.weight", block(INNER, WIDTH).astype(np.float16))
        model.add_tensor(f"blk.{layer}.ffn_down.weight", block(WIDTH, INNER).astype(np.float16))
        for name in ("attn_norm", "ffn_norm"):
            model.add_tensor(f"blk.{layer}.{name}.weight", np.ones(WIDTH, np.float32))
    model.write_header_to_file()
    model.write_kv_data_to_file()
    model.write_tensors_to_file()
    model.close()
    return path


def write_random_model(path: Path) -> Path:
    """A model of random weights that speaks printable ASCII."""
    draw = np.random.default_rng(7)
    output = draw.normal(0, 1, (len(VOCABULARY), WIDTH))
    for i, token in enumerate(VOCABULARY):
        if token in SPECIAL or not (token.isascii() and token.isprintable()):
            output[i] = 0
    return write_model(
        path,
        draw.normal(0, 1, (len(VOCABULARY), WIDTH)),
        output,
        lambda rows, columns: draw.normal(0, 1.5 / np.sqrt(columns), (rows, columns)),
    )


def write_reciting_model(path: Path, text: str) -> Path:
    """A model that says `text` again and again, byte by byte; no byte may occur twice in it.

    Its blocks do nothing, so the next token depends on the last one alone: each byte leads to the next.
    """
    embedding = np.zeros((len(VOCABULARY), WIDTH))
    embedding[:, 0] = 1
    output = np.zeros((len(VOCABULARY), WIDTH))
    tokens = [len(SPECIAL) + byte for byte in text.encode()]
    output[tokens[0], 0] = 1
    for i, token in enumerate(tokens):
        embedding[token] = 0
        embedding[token, i + 1] = 1
        output[tokens[(i + 1) % len(tokens)], i + 1] = 1
    return write_model(path, embedding, output, lambda rows, columns: np.zeros((rows, columns)))


def write_random_folder(folder: Path) -> Path:
    """Random weights that speak printable ASCII, as Hugging Face models lie in a folder."""
    draw = np.random.default_rng(7)
    output = draw.normal(0, 1, (len(VOCABULARY), WIDTH))
    for i, token in enumerate(VOCABULARY):
        if token in SPECIAL or not (token.isascii() and token.isprintable()):
            output[i] = 0
    embedding = draw.normal(0, 1, (len(VOCABULARY), WIDTH))
    return write_folder(
        folder, embedding, output, lambda rows, columns: draw.normal(0, 1.5 / np.sqrt(columns), (rows, columns))
    )


def write_folder(
    folder: Path,
    embedding: Weights,
    output: Weights,
    block: Callable[[int, int], Weights],
    *,
    chunks: Sequence[str] = (),
    template: str = TEMPLATE,
) -> Path:
    """A Llama of two blocks in a folder with safetensors. `chunks`: further tokens, each a text of its own."""
    words_in_all = len(VOCABULARY) + len(chunks)
    tensors = {"model.embed_tokens.weight": embedding, "lm_head.weight": output}
    tensors["model.norm.weight"] = np.ones(WIDTH)
    shapes = {f"self_attn.{name}_proj": (WIDTH, WIDTH) for name in "qkvo"}
    shapes |= {"mlp.gate_proj": (INNER, WIDTH), "mlp.up_proj": (INNER, WIDTH), "mlp.down_proj": (WIDTH, INNER)}
    for layer in range(LAYERS):
        for name, (rows, columns) in shapes.items():
            tensors[f"model.layers.{layer}.{name}.weight"] = block(rows, columns)
        for name in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"model.layers.{layer}.{name}.weight"] = np.ones(WIDTH)
    folder.mkdir()
    write_safetensors(folder / "model.safetensors", tensors)
    added = [{"id": i, "content": each, "special": True} for i, each in enumerate(SPECIAL)]
    added += [{"id": len(VOCABULARY) + i, "content": each, "special": False} for i, each in enumerate(chunks)]
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    letters = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    words = {"type": "BPE", "vocab": {each: i for i, each in enumerate(VOCABULARY)}, "merges": MERGES}
    files: dict[str, dict[str, Any]] = {
        "config.json": {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "hidden_size": WIDTH,
            "intermediate_size": INNER,
            "num_hidden_layers": LAYERS,
            "num_attention_heads": HEADS,
            "num_key_value_heads": HEADS,
            "vocab_size": words_in_all,
            "max_position_embeddings": CONTEXT,
            "rms_norm_eps": 1e-5,
            "tie_word_embeddings": False,
            "bos_token_id": 0,
            "eos_token_id": 2,
        },
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": SPECIAL[0],
            "eos_token": SPECIAL[2],
            "chat_template": template,
        },
        "tokenizer.json": {
            "version": "1.0",
            "added_tokens": [{**plain, **each} for each in added],
            "pre_tokenizer": letters,
            "decoder": letters,
            "model": words,
        },
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    return folder


def write_safetensors(path: Path, tensors: dict[str, Weights]) -> None:
    """Weights in half precision: a header in JSON with its length before it, then the bytes."""
    header: dict[str, Any] = {}
    data = b""
    for name, tensor in tensors.items():
        written = tensor.astype("<f2").tobytes()
        header[name] = {"dtype": "F16", "shape": tensor.shape, "data_offsets": [len(data), len(data) + len(written)]}
        data += written
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


@pytest.fixture(scope="session")
def write_tensors() -> Callable[[Path, dict[str, Weights]], None]:
    """Writes a file of safetensors."""
    return write_safetensors


@pytest.fixture(scope="session")
def random_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model file made once for all tests."""
    return write_random_model(tmp_path_factory.mktemp("models") / "random.gguf")


RECITED = "é€𝄞a"
"""Characters of two, three, four tokens and one."""


@pytest.fixture(scope="session")
def reciting_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that recites `RECITED`."""
    return write_reciting_model(tmp_path_factory.mktemp("models") / "reciting.gguf", RECITED)


class HostProcess:
    """An engine host that was started."""

    def __init__(self, process: asyncio.subprocess.Process, lifeline: int) -> None:
        self.process = process
        self.lifeline = lifeline
        self.phases: list[dict[str, Any]] = []
        self.port = 0

    async def phase(self, name: str, within_s: float = START_S) -> dict[str, Any]:
        """Read phases until this one."""
        assert self.process.stdout is not None
        async with asyncio.timeout(within_s):
            while line := await self.process.stdout.readline():
                said = json.loads(line)
                self.phases.append(said)
                self.port = said.get("port", self.port)
                if said["phase"] == name:
                    return said
        raise AssertionError(f"the host ended without {name}: {self.phases}")

    async def open(self, gateway: str = "g") -> SessionClient:
        """A session with this host."""
        return await SessionClient.open(f"127.0.0.1:{self.port}", make_hello("m-1", "i-1", "d-1", gateway), timeout=30)

    async def exit_code(self) -> int:
        """Wait for the end."""
        return await asyncio.wait_for(self.process.wait(), START_S)

    def close_lifeline(self) -> None:
        """What the supervisor's end does."""
        if self.lifeline >= 0:
            os.close(self.lifeline)
            self.lifeline = -1


class VllmHost:
    """A host with vLLM that several tests share, each over a session of its own. Started without an event loop."""

    def __init__(self, python: str, folder: Path, **changes: object) -> None:
        unwatched = {"engine": "vllm", "without_agent_s": 3600, "log_level": "warning"}
        launch = write_launch(folder, launch_fields(**unwatched, **changes))
        reading, self._lifeline = os.pipe()
        command = [python, "-m", "weft_engine", "--launch", str(launch), "--lifeline", str(reading)]
        self.log = launch.with_suffix(".err")
        with self.log.open("wb") as errors:
            self.process = subprocess.Popen(command, pass_fds=(reading,), stdout=subprocess.PIPE, stderr=errors)
        os.close(reading)
        self.said: list[dict[str, Any]] = []
        self.ready = self.wait_for("ready")

    def wait_for(self, phase: str) -> dict[str, Any]:
        """Read what the host says until this phase."""
        until = time.monotonic() + VLLM_STARTS_S
        assert self.process.stdout is not None
        while select.select([self.process.stdout], [], [], max(0.0, until - time.monotonic()))[0]:
            line = self.process.stdout.readline()
            if not line:
                break
            self.said.append(json.loads(line))
            if self.said[-1]["phase"] == phase:
                return self.said[-1]
        raise AssertionError(f"no {phase}: {self.said}; {self.log.read_text(errors='replace')[-3000:]}")

    async def open(self, gateway: str = "g") -> SessionClient:
        """A session with this host."""
        address = f"127.0.0.1:{self.ready['port']}"
        return await SessionClient.open(address, make_hello("m-1", "i-1", "d-1", gateway), timeout=30)

    def processes(self) -> list[psutil.Process]:
        """vLLM's own, under the host."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def end(self) -> None:
        """Kill it, however it is; its processes must end with it."""
        below = self.processes() if self.process.poll() is None else []
        self.process.kill()
        self.process.wait(30)
        os.close(self._lifeline)
        assert self.process.stdout is not None
        said = self.process.stdout.read()
        self.process.stdout.close()
        assert [] == psutil.wait_procs(below, timeout=30)[1], "vLLM's processes outlived their host"
        for line in said.splitlines():
            assert "phase" in json.loads(line), "something else wrote to the host's stdout"


@pytest.fixture(scope="session")
def vllm_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Python of an environment with vLLM and this tree's engine host."""
    return str(vllm_environment(Path(__file__).parents[3], tmp_path_factory.mktemp("vllm") / "env"))


@pytest.fixture(scope="session")
def start_vllm(vllm_python: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., VllmHost]:
    """Start hosts with vLLM, with changed launches; `end` is the caller's."""
    folder = tmp_path_factory.mktemp("vllm-hosts")

    def start_host(**changes: object) -> VllmHost:
        return VllmHost(vllm_python, folder, **changes)

    return start_host


@pytest.fixture(scope="session")
def random_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights, as `random_model` are, in a folder with safetensors."""
    return write_random_folder(tmp_path_factory.mktemp("models") / "random")


@pytest.fixture(scope="session")
def write_scripts(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Sequence[Sequence[str]], str], Path]:
    """Writes a model in a folder that goes from each token of a script to the next, and ends its answer after the
    last; no token may stand in two places. The template decides by its last token which script is said."""

    def write(scripts: Sequence[Sequence[str]], template: str) -> Path:
        chunks = [chunk for script in scripts for chunk in script]
        assert len(chunks) == len(set(chunks)) < WIDTH
        embedding, output = (np.zeros((len(VOCABULARY) + len(chunks), WIDTH)) for _ in range(2))
        embedding[:, WIDTH - 1] = 1
        for script in scripts:
            for chunk, following in pairwise([*script, None]):
                place = chunks.index(str(chunk))
                embedding[len(VOCABULARY) + place] = np.eye(WIDTH)[place]
                next_id = (
                    SPECIAL.index("<|im_end|>") if following is None else len(VOCABULARY) + chunks.index(following)
                )
                output[next_id, place] = 1
        folder = tmp_path_factory.mktemp("models") / "scripts"
        return write_folder(
            folder, embedding, output, lambda rows, columns: np.zeros((rows, columns)), chunks=chunks, template=template
        )

    return write


@pytest.fixture(scope="session")
def random_vllm(start_vllm: Callable[..., VllmHost], random_folder: Path) -> Generator[VllmHost, None, None]:
    """A host that runs random weights from a folder."""
    arguments = {"enforce_eager": True, "block_size": 32}  # its files name no type: it is computed in float32
    host = start_vllm(model_path=str(random_folder), engine_args=arguments, max_waiting=20)
    yield host
    host.end()


StartHost = Callable[..., AbstractAsyncContextManager[HostProcess]]


def launch_fields(**changes: object) -> dict[str, object]:
    """A launch of a simulated engine, with changes."""
    return {
        "replica": "m-1",
        "incarnation": "i-1",
        "node": "n-1",
        "revision_digest": "d-1",
        "engine": "simulated",
        "context_tokens": 512,
        "concurrency": 4,
        "correlation_id": "c-1",
        **changes,
    }


def write_launch(folder: Path, fields: dict[str, object]) -> Path:
    """A launch file of its own name."""
    file = folder / f"launch-{len(list(folder.iterdir()))}.json"
    file.write_text(json.dumps(fields))
    return file


@asynccontextmanager
async def started(tmp_path: Path, python: str, **changes: object) -> AsyncGenerator[HostProcess, None]:
    """A host process with its supervisor's pipe; it is ended with the context."""
    launch = write_launch(tmp_path, launch_fields(**changes))
    reading, writing = os.pipe()
    command = ["-m", "weft_engine", "--launch", str(launch), "--lifeline", str(reading)]
    with launch.with_suffix(".err").open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            python,
            *command,
            pass_fds=(reading,),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
        )
    os.close(reading)
    host = HostProcess(process, writing)
    try:
        yield host
    finally:
        host.close_lifeline()
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.fixture
def start(tmp_path: Path) -> StartHost:
    """Start hosts with changed launches."""

    def start_host(python: str = sys.executable, **changes: object) -> AbstractAsyncContextManager[HostProcess]:
        return started(tmp_path, python, **changes)

    return start_host


class Answer:
    """A sink that keeps one request's answer."""

    def __init__(self) -> None:
        self.number = 0
        self.outputs: list[pb.Output] = []
        self.first = asyncio.Event()
        self._ended = asyncio.Event()

    def __call__(self, output: pb.Output) -> None:
        self.outputs.append(output)
        self.first.set()
        if output.finish:
            self._ended.set()

    @property
    def text(self) -> str:
        return "".join(output.text for output in self.outputs)

    @property
    def ids(self) -> list[int]:
        return [i for output in self.outputs for i in output.token_ids]

    async def end(self) -> pb.Output:
        """The last output."""
        await asyncio.wait_for(self._ended.wait(), 30)
        return self.outputs[-1]


@pytest.fixture
def ask() -> Callable[..., Answer]:
    """Submit a chat or text and keep its answer."""

    def submit(client: SessionClient, words: str, **fields: Any) -> Answer:
        answer = Answer()
        request = pb.Submit(**fields)
        if words:
            request.chat.messages.add(role="user", content=words)
        answer.number = client.submit(request, answer)
        return answer

    return submit

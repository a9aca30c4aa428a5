"""llama.cpp's 70 templates, rendered here, by plain jinja2 as `transformers` sets it up, and by llama.cpp."""

import functools
import importlib
import json
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

import httpx
import pytest
from jinja2 import TemplateError, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment
from weft_prompts.templates import Chat, Template, TemplateFailed, TemplateRefused
from weft_prompts.templates.contents import contents_as_taken
from weft_testing.llama_cpp_archive import llama_cpp_archive

from .llamacpp_differences import OF_LLAMA_CPP, OF_TRANSFORMERS
from .probe_chats import CHATS

pytestmark = pytest.mark.slow
_TINY = Path(__file__).resolve().parents[3] / "models/tiny/src/weft_tiny/shipped/weft-tiny.gguf"
_SPECIAL = {"bos_token": "<|endoftext|>", "eos_token": "<|im_end|>"}
_NOW = datetime(2026, 11, 23)
_FAILED = "(it failed)"
_COUNT = 70
"""Templates of the archive, which is fetched by the first test that runs, and by no collection."""


def _names() -> list[str]:
    return sorted(path.stem for path in (llama_cpp_archive() / "templates").iterdir())


def _text(name: str) -> str:
    return (llama_cpp_archive() / "templates" / f"{name}.jinja").read_text()


def _ours(text: str, chat: Chat, now: datetime) -> str:
    try:
        return Template(text, _SPECIAL).render(chat, now=now)
    except (TemplateFailed, TemplateRefused):
        return _FAILED


class _Generation(Extension):
    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)


@functools.cache
def _plain() -> ImmutableSandboxedEnvironment:
    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, "jinja2.ext.loopcontrols"]
    )

    def to_json(value: Any, ensure_ascii: bool = False, **words: Any) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, **words)

    def fail(message: str) -> NoReturn:
        raise TemplateError(message)

    made.filters["tojson"] = to_json
    known: Any = made.globals
    known.update({"raise_exception": fail, "strftime_now": _NOW.strftime})
    return made


def _by_jinja2(text: str, chat: Chat) -> str:
    messages = contents_as_taken(text, [dict(message) for message in chat.messages])
    given = {"messages": messages, "tools": chat.tools, "documents": None, **_SPECIAL, **chat.extra}
    try:
        return _plain().from_string(text).render(add_generation_prompt=chat.add_generation_prompt, **given)
    except Exception:
        return _FAILED


def _sent(chat: Chat) -> dict[str, Any]:
    messages = json.loads(json.dumps(list(chat.messages)))
    for message in messages:
        for call in message.get("tool_calls", ()):
            call["function"]["arguments"] = json.dumps(call["function"]["arguments"])  # as clients send them
    body: dict[str, Any] = {"messages": messages, "add_generation_prompt": chat.add_generation_prompt}
    return body | ({"tools": chat.tools} if chat.tools else {})


@contextmanager
def _llama_cpp(text: str) -> Generator[httpx.Client]:
    native: Any = importlib.import_module("xllamacpp")
    params = native.CommonParams()
    params.model.path, params.chat_template, params.use_jinja = str(_TINY), text, True
    params.n_ctx, params.n_parallel, params.warmup, params.cache_ram_mib = 64, 1, False, 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = params.n_threads_http = 1
    params.verbosity, params.ui, params.hostnames, params.port = 0, False, ["127.0.0.1"], 0
    server = native.Server(params)
    with httpx.Client(base_url=server.listening_address, timeout=60) as client:
        yield client
    del server


def test_the_archive_has_its_70_templates() -> None:
    assert _COUNT == len(_names())
    assert set(OF_LLAMA_CPP) | set(OF_TRANSFORMERS) <= set(_names())


@pytest.mark.parametrize("number", range(_COUNT))
def test_a_template_renders_as_plain_jinja2_does_but_where_the_table_says(number: int) -> None:
    name = _names()[number]
    text = _text(name)
    differ = {said for said, chat in CHATS.items() if _ours(text, chat, _NOW) != _by_jinja2(text, chat)}
    assert set(OF_TRANSFORMERS.get(name, ("", ""))[0].split()) == differ


@pytest.mark.parametrize("number", range(_COUNT))
def test_a_template_renders_as_llama_cpp_does_but_where_the_table_says(number: int) -> None:
    name = _names()[number]
    text, differ = _text(name), set[str]()
    with _llama_cpp(text) as client:
        for said, chat in CHATS.items():
            answer = client.post("/apply-template", json=_sent(chat))
            theirs = answer.json()["prompt"] if answer.is_success else _FAILED
            if theirs != _ours(text, chat, datetime.now()):
                differ.add(said)
    assert set(OF_LLAMA_CPP.get(name, ("", ""))[0].split()) == differ

"""`weft chat`: a conversation at a terminal; one question from the command line or from a pipe, plain text out."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weft_client.failure import Exit, Failure
from weft_client.gateway import Gateway

from weft_cli import locate
from weft_cli.chat.answer_stream import answer
from weft_cli.chat.chat_models import TOY, ambiguous, chat_models, to_ask
from weft_cli.chat.conversation import Conversation
from weft_cli.chat.terminal import person_watches_stderr
from weft_cli.outcome import show
from weft_cli.render import printable

_ANSWER_S = 300.0
"""A stream may be silent for so long."""
MAX_QUESTION = 4 << 20
"""Bytes read from a pipe; a gateway takes 8 MiB in all."""


def run(
    folder: Path | None,
    url: str | None,
    question: str | None,
    *,
    model: str | None,
    system: str | None,
    options: Mapping[str, Any],
    as_json: bool,
) -> None:
    """Ask `question`, or what comes from a pipe, once; at a terminal and without a question, talk."""
    gateway = locate.gateway(folder, url, timeout_s=_ANSWER_S)
    given = {name: value for name, value in options.items() if value is not None}
    conversation = Conversation(model or "", system, options=given)
    if question is None and sys.stdin.isatty():
        if as_json:
            raise Failure("--json needs a question: weft chat --json 'What is …?'", Exit.USAGE)
        from weft_cli.chat.session import Session
        from weft_cli.chat.terminal import Terminal

        Session(gateway, Terminal(), conversation).run(model)
        return
    text = _from_pipe() if question in (None, "-") else question
    if not text.strip():
        raise Failure("there is no question: weft chat 'What is …?', or one through a pipe", Exit.USAGE)
    _once(gateway, conversation, model, text, as_json=as_json)


def _once(gateway: Gateway, conversation: Conversation, wanted: str | None, text: str, *, as_json: bool) -> None:
    models = chat_models(gateway) if wanted is None or person_watches_stderr() else []
    chosen = to_ask(models, wanted)
    if chosen is None:
        raise ambiguous(models)
    if chosen.builtin and person_watches_stderr():
        print(f"({chosen.name} is {TOY}.)", file=sys.stderr)
    body = Conversation(chosen.name, conversation.system, options=conversation.options).asked(text).body()
    if as_json:
        show(gateway.post("/v1/chat/completions", {**body, "stream": False}))
        return
    shown = printable if sys.stdout.isatty() else str
    begun = False
    try:
        for piece in answer(gateway, body):
            print(shown(piece), end="", flush=True)
            begun = True
    finally:
        if begun:
            print(flush=True)


def _from_pipe() -> str:
    """What stands in stdin. Raises Failure for what is too long or no text."""
    data = sys.stdin.buffer.read(MAX_QUESTION + 1)
    if len(data) > MAX_QUESTION:
        raise Failure(f"the question on stdin is longer than {MAX_QUESTION} bytes; ask a shorter one", Exit.USAGE)
    try:
        return data.decode().rstrip("\n")
    except UnicodeDecodeError as e:
        raise Failure(f"the question on stdin is no UTF-8 text (byte {e.start})", Exit.USAGE) from None

"""`weft chat`: a conversation at a terminal; one question from the command line or from a pipe, plain text out."""

import sys
from pathlib import Path
from typing import Any

from weft_cli import where
from weft_cli.client import Gateway
from weft_cli.failure import Exit, Failure
from weft_cli.harmless import harmless
from weft_cli.talk.answering import answer
from weft_cli.talk.conversation import Conversation
from weft_cli.talk.served import TOY, servable, to_ask, which
from weft_cli.talk.terminal import person_watches_stderr

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
    max_tokens: int | None,
    temperature: float | None,
) -> None:
    """Ask `question`, or what comes from a pipe, once; at a terminal and without a question, talk."""
    gateway = where.gateway(folder, url, timeout_s=_ANSWER_S)
    given = {"max_tokens": max_tokens, "temperature": temperature}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    conversation = Conversation(model or "", system, options=options)
    if question is None and sys.stdin.isatty():
        from weft_cli.talk.session import Session
        from weft_cli.talk.terminal import Terminal

        Session(gateway, Terminal(), conversation).run(model)
        return
    text = _from_pipe() if question in (None, "-") else question
    if not text.strip():
        raise Failure("there is no question: weft chat 'What is …?', or one through a pipe", Exit.USAGE)
    _once(gateway, conversation, model, text)


def _once(gateway: Gateway, conversation: Conversation, wanted: str | None, text: str) -> None:
    models = servable(gateway) if wanted is None or person_watches_stderr() else []
    chosen = to_ask(models, wanted)
    if chosen is None:
        raise which(models)
    if chosen.builtin and person_watches_stderr():
        print(f"({chosen.name} is {TOY}.)", file=sys.stderr)
    body = Conversation(chosen.name, conversation.system, options=conversation.options).asked(text).body()
    shown = harmless if sys.stdout.isatty() else str
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

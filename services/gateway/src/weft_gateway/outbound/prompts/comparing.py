"""Asking an engine for the ids of the probes, and holding them against this gateway's own."""

from functools import partial
from typing import Final

from weft_contracts.gen import session_pb2 as pb
from weft_dataplane.client_errors import UnaryCallFailed
from weft_dataplane.session_client import SessionClient
from weft_prompts.model_prompts import ModelPrompts
from weft_prompts.templates.bounds import Bounds
from weft_prompts.templates.chat import Chat
from weft_prompts.templates.refusals import TemplateFailed, TemplateRefused
from weft_prompts.tokens.refusal import NoTokenizer
from weft_prompts.way import Way

from weft_gateway.domain.inference_request import Message
from weft_gateway.domain.prompts.comparison import Comparison, Ids, Probed, compared
from weft_gateway.domain.prompts.probes import CHATS, TEXTS
from weft_gateway.domain.submission import message_fields
from weft_gateway.outbound.prompts.prompt_threads import PromptThreads

BOUNDS: Final = Bounds(steps=1_000_000)
SHORT_BOUNDS: Final = Bounds(steps=50_000, text=65_536)
"""Of what is made on the event loop: some 10 ms for a template, and as much for the tokens of its text."""
ANSWER_S: Final = 30.0
"""For each probe."""
TELLS_NONE: Final = "its engine tells no token ids: it is of an older release, or has no tokenizer of its own"


def chat_of(messages: tuple[Message, ...]) -> Chat:
    """A request's messages as a template is given them."""
    return Chat([message_fields(message) for message in messages])


async def compare(prompts: ModelPrompts, session: SessionClient, threads: PromptThreads) -> Comparison:
    """Ask for every probe. Raises UnaryCallFailed where the replica doesn't answer, ThreadsBusy."""
    chats = CHATS if prompts.template is not None else ()
    ours = await threads.run(partial(_ours, prompts, chats))
    probed: list[Probed] = []
    asked: list[pb.Chat | str] = [
        *TEXTS,
        *(pb.Chat(messages=[pb.Message(**message_fields(m)) for m in chat]) for chat in chats),
    ]
    for prompt, (what, made) in zip(asked, ours, strict=True):
        try:
            theirs = await session.unary.prompt_ids(prompt, timeout=ANSWER_S)
        except UnaryCallFailed as failed:
            if failed.fault != pb.FAULT_BAD_REQUEST:
                raise
            theirs = None
        else:
            if theirs is None:
                return Comparison(None, TELLS_NONE)
        probed.append(Probed(what, made, theirs))
    way, why = compared(probed)
    return Comparison(way, why, bool(chats), session.welcome.context_tokens)


def _ours(prompts: ModelPrompts, chats: tuple[tuple[Message, ...], ...]) -> list[tuple[str, dict[Way, Ids | None]]]:
    found: list[tuple[str, dict[Way, Ids | None]]] = []
    for text in TEXTS:
        ids = _encoded(prompts, text, True)
        found.append((f"the text {text!r}", dict.fromkeys(Way, ids)))
    for chat in chats:
        found.append((f"the chat {[m.content for m in chat]!r}", {way: _chat_ids(prompts, chat, way) for way in Way}))
    return found


def _chat_ids(prompts: ModelPrompts, chat: tuple[Message, ...], way: Way) -> list[int] | None:
    try:
        return prompts.of_chat(chat_of(chat), way, partial(_encoded_or_raise, prompts), BOUNDS)
    except (TemplateFailed, TemplateRefused, NoTokenizer):
        return None


def _encoded_or_raise(prompts: ModelPrompts, text: str, ends: bool) -> list[int]:
    return prompts.tokenizer.encode(text, ends=ends)


def _encoded(prompts: ModelPrompts, text: str, ends: bool) -> list[int] | None:
    try:
        return prompts.tokenizer.encode(text, ends=ends)
    except NoTokenizer:
        return None

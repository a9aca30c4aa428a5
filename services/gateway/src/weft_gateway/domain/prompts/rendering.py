"""Which prompts a gateway may make in an engine's place, and which an engine has to make itself."""

from collections.abc import Iterable

from weft_gateway.domain.inference_request import InferenceRequest, Message

SURELY_LONG = 3
"""Characters a token: a prompt with more of them than its context holds tokens is counted before it is sent."""

A_MESSAGE = 64
"""Characters that each message counts beside its own: what a template does and writes for one that is empty."""


def only_engine_renders(request: InferenceRequest) -> str:
    """Why a request's prompt is the engine's to make; empty: a gateway may."""
    if request.tokens:
        return "it is token ids already"
    if not request.chat:
        return ""
    if request.template_kwargs:
        return "its template's variables are the engine's to check"
    if request.constraint is not None and request.constraint.told:
        return "an engine may tell of tools in the model's own form"
    if request.chat[-1].role == "assistant":
        return "engines go on with an assistant's last message in different ways"
    return ""


def characters(request: InferenceRequest) -> int:
    """Of all texts of a prompt."""
    return chat_characters(request.chat) if request.chat else len(request.text or "")


def chat_characters(chat: Iterable[Message]) -> int:
    """Of all texts of a chat, and of what stands around each."""
    return sum(A_MESSAGE + len(message.content) + len(message.name) for message in chat)

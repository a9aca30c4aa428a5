"""`POST /tokenize` and `/detokenize`: the bodies of vLLM's server to checked requests."""

from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from weft_gateway.domain.inference_request import Message
from weft_gateway.domain.openai.chat import MAX_TEMPLATE_KWARGS
from weft_gateway.domain.openai.decoding import checked
from weft_gateway.domain.openai.fields import unsupported
from weft_gateway.domain.openai.messages import Turn, messages_of
from weft_gateway.domain.openai.text_or_tokens import checked_ids
from weft_gateway.domain.openai.tools import Tool, tools_of, with_tools
from weft_gateway.domain.refused import Refused

_encode: Final = msgspec.json.Encoder().encode


class TokenizeBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A text or a chat, as vLLM's server takes it."""

    model: str
    prompt: str | None = None
    messages: list[Turn] | None = None
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    """The chat ends within its last message."""
    add_special_tokens: bool | None = None
    """Of a text: what the model wants around each is put there; so it is by default. A chat's template does that."""
    return_token_strs: bool = False
    chat_template_kwargs: dict[str, Any] | None = None
    """Variables of the model's chat template."""
    tools: list[Tool] | None = None
    """What the model is told of its tools is counted as `/v1/chat/completions` tells it."""
    chat_template: str | None = None
    mm_processor_kwargs: dict[str, Any] | None = None


class DetokenizeBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Token ids, as vLLM's server takes them."""

    model: str
    tokens: list[int]


@dataclass(frozen=True, slots=True)
class TokenizeRequest:
    """What a client wants as token ids. Exactly one of `chat` and `text` is given."""

    model: str
    text: str | None = None
    special: bool = True
    """What the model wants around a text is put there."""
    chat: tuple[Message, ...] = ()
    awaits: bool = True
    """The chat ends with the beginning of an answer."""
    goes_on: bool = False
    variables: tuple[tuple[str, Any], ...] = ()
    tools: bool = False
    strings: bool = False

    @property
    def field(self) -> str:
        """The body's, that a refusal is about."""
        return "prompt" if self.text is not None else "messages"

    @property
    def only_here(self) -> str:
        """The field that no engine can be asked about, as a client names it; empty: an engine could answer this."""
        found = (
            ("return_token_strs", self.strings),
            ("continue_final_message", self.goes_on),
            ("chat_template_kwargs", bool(self.variables)),
            ("add_generation_prompt", not self.awaits),
            ("add_special_tokens", not self.special),
        )
        return next((name for name, given in found if given), "")

    def to(self, model: str) -> "TokenizeRequest":
        """The same of another model."""
        return replace(self, model=model)


@dataclass(frozen=True, slots=True)
class DetokenizeRequest:
    """Token ids that a client wants as text."""

    model: str
    ids: tuple[int, ...]


_tokenize_decoder: Final = msgspec.json.Decoder(TokenizeBody)
_detokenize_decoder: Final = msgspec.json.Decoder(DetokenizeBody)


def check_tokenize(body: bytes) -> TokenizeRequest:
    """The request in a body. Raises Refused."""
    return checked(_tokenize_decoder, body, _tokenize)


def check_detokenize(body: bytes) -> DetokenizeRequest:
    """The request in a body. Raises Refused."""
    return checked(_detokenize_decoder, body, _detokenize)


def tokenize_answer(ids: list[int], context_tokens: int, strings: list[str] | None) -> bytes:
    """The answer's JSON, as vLLM's server writes it."""
    return _encode({"count": len(ids), "max_model_len": context_tokens, "tokens": ids, "token_strs": strings})


def detokenize_answer(text: str) -> bytes:
    """The same of a text."""
    return _encode({"prompt": text})


def _tokenize(found: TokenizeBody) -> TokenizeRequest:
    if found.chat_template is not None:
        raise unsupported("chat_template", "the model's own is used")
    if found.mm_processor_kwargs:
        raise unsupported("mm_processor_kwargs", "only text is taken")
    if (found.prompt is None) == (found.messages is None):
        raise Refused(400, "Give `prompt` or `messages`, and not both.", param="prompt", code="missing_field")
    if found.prompt is not None:
        for name in ("tools", "chat_template_kwargs", "continue_final_message"):
            if getattr(found, name):
                raise unsupported(name, "together with `prompt`, since it is of chats")
        special = found.add_special_tokens is not False
        return TokenizeRequest(found.model, found.prompt, special, strings=found.return_token_strs)
    return _chat(found, found.messages or [])


def _chat(found: TokenizeBody, turns: list[Turn]) -> TokenizeRequest:
    if found.add_special_tokens:
        raise unsupported("add_special_tokens", "together with `messages`, whose template writes them")
    messages = messages_of(turns)
    tools = tools_of(found.tools, None)
    if found.continue_final_message and found.add_generation_prompt:
        what = "`continue_final_message` goes on with the last message; give `add_generation_prompt: false` with it."
        raise Refused(400, what, param="continue_final_message", code="invalid_value")
    variables = found.chat_template_kwargs or {}
    if len(_encode(variables)) > MAX_TEMPLATE_KWARGS:
        what = f"`chat_template_kwargs` has more than {MAX_TEMPLATE_KWARGS} bytes as JSON; give less."
        raise Refused(400, what, param="chat_template_kwargs", code="out_of_range")
    return TokenizeRequest(
        found.model,
        chat=tuple(messages if tools is None else with_tools(messages, tools)),
        awaits=found.add_generation_prompt,
        goes_on=found.continue_final_message,
        variables=tuple(variables.items()),
        tools=tools is not None,
        strings=found.return_token_strs,
    )


def _detokenize(found: DetokenizeBody) -> DetokenizeRequest:
    ids = found.tokens and checked_ids("tokens", "tokens", found.tokens)
    return DetokenizeRequest(found.model, tuple(ids))

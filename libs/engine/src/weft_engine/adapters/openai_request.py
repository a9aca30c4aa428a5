"""A request of the session protocol as an OpenAI server's body."""

from typing import Any, Final, NamedTuple

import msgspec
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import RequestRefused

from weft_engine.adapters.openai_settings import OpenAISettings
from weft_engine.adapters.openai_tools import functions_of

_MAX_INT32: Final = 2**31 - 1
_PASSED_ON: Final = ("temperature", "top_p", "top_k", "min_p", "seed", "presence_penalty", "frequency_penalty")
"""Fields of the sampling that the server knows by the same name, where it knows them."""


class Asked(NamedTuple):
    """What is sent, and how its answer is to be read."""

    path: str
    body: bytes
    calls: bool
    """The server was told of tools: its calls are translated."""
    json_text: bool
    """The answer must be JSON."""


def asked_of(request: pb.Submit, prompt: pb.Prompt, settings: OpenAISettings) -> Asked:
    """The request for a server. Raises RequestRefused for what none can do."""
    if request.resume.output_ids or request.resume.text_sent:
        raise RequestRefused(
            pb.FAULT_BAD_REQUEST, "an OpenAI server can't go on with an answer that was begun elsewhere"
        )
    body: dict[str, Any] = {
        "model": settings.model,
        "stream": True,
        "stream_options": {"include_usage": True},
        **_drawing(request.sampling),
    }
    chat = prompt.WhichOneof("prompt") == "chat"
    if chat:
        body["messages"] = [_message(each) for each in prompt.chat.messages]
        if request.template_kwargs:
            body["chat_template_kwargs"] = msgspec.Raw(request.template_kwargs.encode())
    else:
        body["prompt"] = prompt.text if prompt.WhichOneof("prompt") == "text" else list(prompt.tokens.ids)
    if request.max_tokens:
        name = settings.max_tokens_name if chat else "max_tokens"
        body[name] = min(request.max_tokens, _MAX_INT32)
    if request.stop:
        body["stop"] = list(request.stop)
    if request.bias:
        body["logit_bias"] = {str(each.id): each.value for each in request.bias}
    if request.HasField("scores"):
        body |= {"logprobs": True, "top_logprobs": request.scores} if chat else {"logprobs": request.scores}
    calls = json_text = False
    if request.HasField("constraint"):
        if not chat:
            raise RequestRefused(
                pb.FAULT_BAD_REQUEST, "an OpenAI server shapes the answers of chats alone", "constraint"
            )
        shape = _shape(request.constraint, settings)
        calls, json_text = "tools" in shape, shape.keys() == {"response_format"}
        body |= shape
    return Asked("/chat/completions" if chat else "/completions", msgspec.json.encode(body), calls, json_text)


def _message(message: pb.Message) -> dict[str, str]:
    made = {"role": message.role, "content": message.content}
    return made | {"name": message.name} if message.name else made


def _drawing(sampling: pb.Sampling) -> dict[str, Any]:
    found: dict[str, Any] = {name: getattr(sampling, name) for name in _PASSED_ON if sampling.HasField(name)}
    for name, value in found.items():
        if isinstance(value, float):
            found[name] = round(value, 6)  # the wire's 32 bits make 0.7 a long number
    if sampling.ignore_end:
        found["ignore_eos"] = True
    return found


def _shape(constraint: pb.Constraint, settings: OpenAISettings) -> dict[str, Any]:
    """What holds the server to a constraint, as far as its API can say it."""
    several = constraint.or_text or constraint.most > 1 or bool(constraint.or_json)
    functions = functions_of(constraint) if settings.tool_calls == "server" else None
    if functions:
        may_answer = constraint.or_text or bool(constraint.or_json)
        made: dict[str, Any] = {
            "tools": functions,
            "tool_choice": "auto" if may_answer else "required",
            "parallel_tool_calls": constraint.most > 1,
        }
        return made | _format(constraint.or_json) if constraint.or_json else made
    return {} if several else _format(constraint.json_schema)


def _format(schema: str) -> dict[str, Any]:
    given = msgspec.json.decode(schema)
    if given == {"type": "object"}:
        return {"response_format": {"type": "json_object"}}
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": given}}}

"""Which encoders make the answer of a request."""

from weft_gateway.domain.answers.chat import CHAT, ChatEncoder, LogprobsChatEncoder, ToolCallingChatEncoder
from weft_gateway.domain.answers.choice_encoder import ChoiceEncoder, CompletionEnvelope
from weft_gateway.domain.answers.completions import COMPLETION, LogprobsTextEncoder, TextEncoder
from weft_gateway.domain.answers.response_envelope import ResponseEnvelope
from weft_gateway.domain.answers.responses import ResponseEncoder, ToolCallingResponseEncoder
from weft_gateway.domain.inference_request import InferenceRequest


def envelope_for(
    request: InferenceRequest, number: str, created: int, model: str, digest: str
) -> CompletionEnvelope | ResponseEnvelope:
    """What stands around the answer; `number` makes its id unique."""
    if request.response_echo is not None:
        return ResponseEnvelope(number, created, model, request.response_echo)
    if request.chat:
        return CompletionEnvelope(
            CHAT, f"chatcmpl-{number}", created, model, digest, request.include_usage, request.service_tier
        )
    return CompletionEnvelope(COMPLETION, f"cmpl-{number}", created, model, digest, request.include_usage)


def encoder_for(
    request: InferenceRequest, envelope: CompletionEnvelope | ResponseEnvelope, index: int
) -> ChoiceEncoder:
    """The encoder of one choice."""
    or_json = request.constraint is not None and bool(request.constraint.or_json)
    if isinstance(envelope, ResponseEnvelope):
        if request.calls:
            return ToolCallingResponseEncoder(envelope, request.calls, or_json=or_json)
        return ResponseEncoder(envelope)
    if request.chat:
        if request.calls:
            return ToolCallingChatEncoder(envelope, index, request.calls, or_json=or_json)
        return ChatEncoder(envelope, index) if request.scores is None else LogprobsChatEncoder(envelope, index)
    if request.scores is not None:
        return LogprobsTextEncoder(envelope, index, request.scores)
    return TextEncoder(envelope, index, (request.text or "") if request.echo else "")

"""Whether a prompt leaves room for an answer, once its tokens are counted."""

from weft_gateway.domain.inference_request import InferenceRequest
from weft_gateway.domain.refused import Refused


def check_fits(tokens: int, context_tokens: int, request: InferenceRequest) -> None:
    """Refuse a prompt that fills the context, with the numbers, as engines do. Raises Refused."""
    if tokens < context_tokens:
        return
    asked = f" and `{request.budget_field}` asks for {request.max_tokens}" if request.max_tokens else ""
    what = f"The prompt has {tokens} tokens{asked}, the context holds {context_tokens} with the answer."
    raise Refused(400, what, param=request.named("prompt"), code="context_length_exceeded")

"""What an engine's refusal means for the client, and which ones send the request elsewhere."""

from weft_contracts.gen import session_pb2 as pb
from weft_dataplane.client_errors import SessionError, SessionRefused

from weft_gateway.domain.inference_request import InferenceRequest
from weft_gateway.domain.refused import Refused


def refusal_for(output: pb.Output, request: InferenceRequest) -> Refused | None:
    """The error for a fault of the request itself; None where another replica may do better."""
    if output.finish != pb.FINISH_ERROR:
        return None
    match output.fault:
        case pb.FAULT_BAD_REQUEST:
            what = _sentence(output.error or "the engine refused the request")
            return Refused(400, what, param=request.named(output.field), code="bad_request")
        case pb.FAULT_CONTEXT_EXCEEDED:
            return Refused(
                400,
                _sentence(output.error or "the prompt is longer than the model's context"),
                param=request.named("prompt"),
                code="context_length_exceeded",
            )
        case _:
            return None


def is_retiring(error: SessionError) -> bool:
    """Whether a session was refused because its replica takes nothing new: the request itself has not failed."""
    return isinstance(error, SessionRefused) and error.reason == pb.REFUSAL_REASON_RETIRING


def _sentence(text: str) -> str:
    """What an engine says, begun and ended like all that a client reads."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."

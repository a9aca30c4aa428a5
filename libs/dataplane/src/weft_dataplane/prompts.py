"""Where a request's prompt lies: in its frame, or put beside the stream."""

from google.protobuf.message import DecodeError
from weft_contracts.gen import session_pb2 as pb

from weft_dataplane.engine import RequestRefused
from weft_dataplane.values import ValueRefused, ValueStore


def prompt_of(submit: pb.Submit | pb.Count, values: ValueStore) -> pb.Prompt:
    """The prompt of a Submit or a Count, wherever it lies. Raises RequestRefused."""
    match submit.WhichOneof("prompt"):
        case "chat":
            return pb.Prompt(chat=submit.chat)
        case "text":
            return pb.Prompt(text=submit.text)
        case "tokens":
            assert isinstance(submit, pb.Submit)
            return pb.Prompt(tokens=submit.tokens)
        case "handle":
            try:
                prompt = pb.Prompt.FromString(values.take(submit.handle))
            except ValueRefused as refused:
                raise RequestRefused(pb.FAULT_BAD_REQUEST, f"the prompt is not here: {refused}") from None
            except DecodeError:
                raise RequestRefused(pb.FAULT_BAD_REQUEST, "the value put is no prompt") from None
            if prompt.WhichOneof("prompt") is None:
                raise RequestRefused(pb.FAULT_BAD_REQUEST, "the value put is an empty prompt")
            return prompt
        case _:
            raise RequestRefused(pb.FAULT_BAD_REQUEST, "the request has no prompt: give chat, text or tokens")

"""How a stream ends that can't go on: an explicit error event, never a silent end."""

from weft_gateway.domain.answers.form import DONE
from weft_gateway.domain.problems import openai_error
from weft_gateway.domain.refused import Refused


def broken(refused: Refused) -> bytes:
    """OpenAI's error object as an event, then `[DONE]`."""
    return b"data: " + openai_error(refused) + b"\n\n" + DONE

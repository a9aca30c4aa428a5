"""A checked request as the data plane's Submit."""

from collections.abc import Sequence
from typing import Any

import msgspec
from weft_contracts.gen import session_pb2 as pb

from weft_gateway.domain.asked import Asked


def submission(asked: Asked, correlation_id: str, traceparent: str = "") -> pb.Submit:
    """The Submit that starts a request; its number is given by the session."""
    submit = pb.Submit(
        correlation_id=correlation_id, max_tokens=asked.max_tokens, stop=asked.stop, traceparent=traceparent
    )
    if asked.chat:
        messages = submit.chat.messages
        for role, content in asked.chat:
            messages.add(role=role, content=content)
    elif asked.text is not None:
        submit.text = asked.text
    else:
        submit.tokens.ids.extend(asked.tokens)
    drawing: dict[str, Any] = msgspec.structs.asdict(asked.sampling)
    submit.sampling.CopyFrom(pb.Sampling(**drawing))
    if asked.scores is not None:
        submit.scores = asked.scores
    if asked.constraint is not None:
        submit.constraint.json_schema, submit.constraint.or_text = asked.constraint
    for id, value in asked.bias:
        submit.bias.add(id=id, value=value)
    return submit


def resumption(
    asked: Asked, correlation_id: str, output_ids: Sequence[int], text_sent: str, traceparent: str = ""
) -> pb.Submit | None:
    """The Submit that goes on where another replica ended; None if the budget is used up already."""
    submit = submission(asked, correlation_id, traceparent)
    if asked.max_tokens:
        left = asked.max_tokens - len(output_ids)
        if left <= 0:
            return None
        submit.max_tokens = left
    submit.resume.output_ids.extend(output_ids)
    submit.resume.text_sent = text_sent
    return submit

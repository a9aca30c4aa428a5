"""A checked request as the data plane's Submit."""

from collections.abc import Sequence
from typing import Any

import msgspec
from weft_contracts.gen import session_pb2 as pb

from weft_gateway.domain.inference_request import InferenceRequest, Message


def submission(
    request: InferenceRequest, correlation_id: str, traceparent: str = "", ids: Sequence[int] = ()
) -> pb.Submit:
    """The Submit that starts a request; its number is given by the session.

    `ids`: of its prompt, where this gateway made them; then they are sent in the prompt's place.
    """
    submit = pb.Submit(
        correlation_id=correlation_id, max_tokens=request.max_tokens, stop=_stops(request), traceparent=traceparent
    )
    if request.chat:
        submit.parsed = True
        submit.template_kwargs = request.template_kwargs
    if ids:
        submit.tokens.ids.extend(ids)
    elif request.chat:
        messages = submit.chat.messages
        for role, content, name in request.chat:
            messages.add(role=role, content=content, name=name)
    elif request.text is not None:
        submit.text = request.text
    else:
        submit.tokens.ids.extend(request.tokens)
    drawing: dict[str, Any] = msgspec.structs.asdict(request.sampling)
    submit.sampling.CopyFrom(pb.Sampling(**drawing))
    if request.scores is not None:
        submit.scores = request.scores
    if request.constraint is not None:
        submit.constraint.MergeFrom(pb.Constraint(**request.constraint._asdict()))
    for id, value in request.bias:
        submit.bias.add(id=id, value=value)
    return submit


def resumption(
    request: InferenceRequest,
    correlation_id: str,
    output_ids: Sequence[int],
    text_sent: str,
    traceparent: str = "",
    ids: Sequence[int] = (),
) -> pb.Submit | None:
    """The Submit that goes on where another replica ended; None if the budget is used up already."""
    submit = submission(request, correlation_id, traceparent, ids)
    if request.max_tokens:
        left = request.max_tokens - len(output_ids)
        if left <= 0:
            return None
        submit.max_tokens = left
    submit.resume.output_ids.extend(output_ids)
    submit.resume.text_sent = text_sent
    return submit


def message_fields(message: Message) -> dict[str, str]:
    """A message as templates know it."""
    fields = {"role": message.role, "content": message.content}
    return fields | {"name": message.name} if message.name else fields


def _stops(request: InferenceRequest) -> tuple[str, ...]:
    """A call's JSON is none of the answer's text, so nothing stops within it."""
    must_call = request.calls and request.constraint is not None and not request.constraint.or_text
    return () if must_call else request.stop

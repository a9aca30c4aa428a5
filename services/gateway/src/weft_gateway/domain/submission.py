"""A checked request as the data plane's Submit."""

from collections.abc import Sequence

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
    submit.sampling.CopyFrom(
        pb.Sampling(
            temperature=asked.temperature,
            top_p=asked.top_p,
            top_k=asked.top_k,
            min_p=asked.min_p,
            seed=asked.seed,
            presence_penalty=asked.presence_penalty,
            frequency_penalty=asked.frequency_penalty,
            ignore_end=asked.ignore_end,
        )
    )
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

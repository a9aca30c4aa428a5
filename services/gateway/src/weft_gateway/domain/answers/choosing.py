"""Which templates a request's answer has."""

from weft_gateway.domain.answers.chat import CHAT, CallingChatChoice, ChatChoice, ScoredChatChoice
from weft_gateway.domain.answers.completions import COMPLETION, ScoredTextChoice, TextChoice
from weft_gateway.domain.answers.form import Choice, Envelope
from weft_gateway.domain.asked import Asked


def envelope_of(asked: Asked, number: str, created: int, model: str, digest: str) -> Envelope:
    """What stands around the answer; `number` makes its id unique."""
    if asked.chat:
        return Envelope(CHAT, f"chatcmpl-{number}", created, model, digest, asked.include_usage)
    return Envelope(COMPLETION, f"cmpl-{number}", created, model, digest, asked.include_usage)


def choice_of(asked: Asked, envelope: Envelope, index: int) -> Choice:
    """One choice's templates."""
    if asked.chat:
        if asked.calls:
            return CallingChatChoice(envelope, index)
        return ChatChoice(envelope, index) if asked.scores is None else ScoredChatChoice(envelope, index)
    if asked.scores is not None:
        return ScoredTextChoice(envelope, index, asked.scores)
    return TextChoice(envelope, index, (asked.text or "") if asked.echo else "")

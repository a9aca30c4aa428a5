"""Log probabilities in OpenAI's forms."""

from typing import Any

from weft_contracts.gen import session_pb2 as pb

from weft_gateway.domain.answers.choice_encoder import Scores, encode


def text_of(score: pb.TokenScore) -> str:
    """A token as text; one that is part of a character has a replacement in its place."""
    return score.token.decode("utf-8", "replace")


def chat_logprobs(scores: Scores) -> bytes:
    """The form of chat completions."""
    return encode({"content": score_entries(scores), "refusal": None})


def score_entries(scores: Scores) -> list[dict[str, Any]]:
    """Each token with its log probability and the likeliest ones in its place."""
    return [_entry(score) | {"top_logprobs": [_entry(other) for other in score.likeliest]} for score in scores]


def text_logprobs(scores: Scores, offset: int, top: int) -> tuple[bytes, int]:
    """The form of text completions, and the offset in characters that comes next."""
    tokens = [text_of(score) for score in scores]
    offsets: list[int] = []
    for token in tokens:
        offsets.append(offset)
        offset += len(token)
    found: dict[str, Any] = {
        "tokens": tokens,
        "token_logprobs": [score.logprob for score in scores],
        "top_logprobs": [_likeliest(score) for score in scores] if top else None,
        "text_offset": offsets,
    }
    return encode(found), offset


def _entry(score: pb.TokenScore) -> dict[str, Any]:
    return {"token": text_of(score), "logprob": score.logprob, "bytes": list(score.token)}


def _likeliest(score: pb.TokenScore) -> dict[str, float]:
    """By token text. Two that look the same share a place, which the likelier has."""
    found = {text_of(score): score.logprob}
    for other in score.likeliest:
        found.setdefault(text_of(other), other.logprob)
    return found

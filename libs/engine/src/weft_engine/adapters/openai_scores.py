"""Log probabilities, as OpenAI servers tell them, in the session protocol's form."""

from typing import Final

from weft_contracts.gen import session_pb2 as pb

from weft_engine.adapters.openai_events import Alternative, Logprobs

_MOST: Final = 64
_MAX_ID: Final = 2**31 - 1


def scores_of(logprobs: Logprobs | None, likeliest: int) -> list[pb.TokenScore]:
    """Those of a chunk, each with so many likeliest ones; none where the server gave none."""
    if logprobs is None:
        return []
    if logprobs.content is not None:
        return [_score(each, (each.top_logprobs or [])[: min(likeliest, _MOST)]) for each in logprobs.content[:_MOST]]
    return _in_step(logprobs, min(likeliest, _MOST))


def _score(own: Alternative, others: list[Alternative]) -> pb.TokenScore:
    score = _one(own)
    score.likeliest.extend(_one(other) for other in others)
    return score


def _one(found: Alternative) -> pb.TokenScore:
    id = found.id if found.id is not None and 0 <= found.id <= _MAX_ID else 0
    try:
        token = bytes(found.bytes) if found.bytes is not None else found.token.encode()
    except ValueError:
        token = found.token.encode("utf-8", "replace")
    return pb.TokenScore(id=id, token=token, logprob=found.logprob)


def _in_step(logprobs: Logprobs, likeliest: int) -> list[pb.TokenScore]:
    """The form of text completions: lists that go together."""
    values, top = logprobs.token_logprobs or [], logprobs.top_logprobs or []
    made: list[pb.TokenScore] = []
    for place, token in enumerate((logprobs.tokens or [])[:_MOST]):
        value = values[place] if place < len(values) else None
        score = pb.TokenScore(token=token.encode("utf-8", "replace"), logprob=value or 0.0)
        beside = top[place] if place < len(top) else None
        falling = sorted((beside or {}).items(), key=lambda each: -each[1])[:likeliest]
        for other, logprob in falling:
            score.likeliest.add(token=other.encode("utf-8", "replace"), logprob=logprob)
        made.append(score)
    return made

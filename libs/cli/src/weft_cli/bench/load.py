"""So many streams at once, each asking again as soon as it was answered, for so long."""

import asyncio
import json
import time
from dataclasses import dataclass
from itertools import count

from weft_client.failure import Failure

from weft_cli.bench.figures import Figures, Sample, figures
from weft_cli.bench.http_stream import HttpStream, Place

FIRST_ANSWER_S = 90.0
"""For the question before the measurement: the model may still load."""
_AFTER_ERROR_S = 0.1
"""A server that refuses is not asked as fast as it refuses."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, as a body that every server of this kind takes."""

    model: str
    tokens: int
    prompt: str | None
    ignore_eos: bool = False
    usage: bool = True
    """Whether the server is asked to count; some refuse the field."""

    def body(self, number: int) -> bytes:
        """The `number`-th question. Each differs, so that no server answers from its memory of the last."""
        text = self.prompt or f"Question {number}: what is the capital of France? Answer at length."
        asked: dict[str, object] = {
            "model": self.model,
            "messages": [{"role": "user", "content": text}],
            "max_tokens": self.tokens,
            "temperature": 0,
            "stream": True,
        }
        if self.usage:
            asked["stream_options"] = {"include_usage": True}
        if self.ignore_eos:
            asked["ignore_eos"] = True
        return json.dumps(asked).encode()


async def probe(place: Place, question: Question) -> Question:
    """Ask once before anything is measured; the question in the form that the server takes. Raises Failure."""
    stream = HttpStream(place)
    try:
        sample = await stream.ask(question.body(0), FIRST_ANSWER_S)
        if sample.error is not None and question.usage and "stream_options" in sample.error:
            return await probe(
                place, Question(question.model, question.tokens, question.prompt, question.ignore_eos, False)
            )
    finally:
        stream.close()
    if sample.error is not None:
        raise Failure(f"{question.model} at {place.authority} can't be measured: {sample.error}")
    if not sample.whole:
        raise Failure(f"{question.model} at {place.authority} gave no whole answer within {FIRST_ANSWER_S:g} s")
    return question


async def level(place: Place, question: Question, streams: int, seconds: float) -> Figures:
    """Measure one level. What runs at its end is cut off."""
    numbers = count(1)
    samples: list[Sample] = []
    began = time.perf_counter()
    deadline = began + seconds

    async def stream() -> None:
        stream = HttpStream(place)
        try:
            while (left := deadline - time.perf_counter()) > 0:
                sample = await stream.ask(question.body(next(numbers)), left)
                samples.append(sample)
                if sample.error is not None:
                    await asyncio.sleep(min(_AFTER_ERROR_S, max(0.0, deadline - time.perf_counter())))
        finally:
            stream.close()

    await asyncio.gather(*(stream() for _ in range(streams)))
    return figures(streams, time.perf_counter() - began, samples)

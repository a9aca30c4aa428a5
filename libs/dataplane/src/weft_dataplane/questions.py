"""Answers the questions that are asked beside the tokens: count, embed, rerank."""

import asyncio
from typing import Final

from weft_contracts.gen import session_pb2 as pb

from weft_dataplane.engine import Engine, RequestRefused
from weft_dataplane.prompts import prompt_of
from weft_dataplane.values import ValueRefused, ValueStore

MAX_ANSWER_S: Final = 120.0
"""How long an engine may think about one question."""


async def answer_question(frame: pb.ClientFrame, engine: Engine, values: ValueStore) -> pb.Answer:
    """Ask the engine; refusals and lateness become the answer's error."""
    match frame.WhichOneof("frame"):
        case "count":
            question = frame.count.question
        case "embed":
            question = frame.embed.question
        case _:
            question = frame.rerank.question
    answer = pb.Answer(question=question)
    try:
        async with asyncio.timeout(MAX_ANSWER_S):
            match frame.WhichOneof("frame"):
                case "count":
                    answer.count = await engine.count(prompt_of(frame.count, values))
                case "embed":
                    vectors = await engine.embed(list(frame.embed.texts))
                    answer.handle = values.keep(vectors.SerializeToString()).handle
                case _:
                    scores = await engine.rerank(frame.rerank.query, list(frame.rerank.texts))
                    answer.handle = values.keep(scores.SerializeToString()).handle
    except RequestRefused as refused:
        answer.error = refused.sentence
    except ValueRefused as refused:
        answer.error = str(refused)
    except TimeoutError:
        answer.error = f"the engine did not answer within {MAX_ANSWER_S:g} s"
    return answer

"""The engine's side of calls with one answer each: count, embed, rerank."""

import asyncio
from typing import Final

from weft_contracts.gen import session_pb2 as pb

from weft_dataplane.embeddings import MAX_INLINE_BYTES, inputs_of, vectors_message
from weft_dataplane.engine import Engine, RequestRefused, TellsIds
from weft_dataplane.prompts import prompt_of
from weft_dataplane.values import ValueRefused, ValueStore

MAX_ANSWER_S: Final = 120.0
"""How long an engine may take for one call, in seconds."""


async def handle_unary(frame: pb.ClientFrame, engine: Engine, values: ValueStore) -> pb.Answer:
    """Have the engine answer; refusals and lateness become the answer's error."""
    match frame.WhichOneof("frame"):
        case "count":
            number = frame.count.question
        case "embed":
            number = frame.embed.question
        case _:
            number = frame.rerank.question
    answer = pb.Answer(question=number)
    try:
        async with asyncio.timeout(MAX_ANSWER_S):
            match frame.WhichOneof("frame"):
                case "count":
                    await _count(answer, frame.count, engine, values)
                case "embed":
                    vectors = vectors_message(await engine.embed(inputs_of(frame.embed, values)))
                    if vectors.ByteSize() <= MAX_INLINE_BYTES:
                        answer.vectors.CopyFrom(vectors)
                    else:
                        answer.handle = values.keep(vectors.SerializeToString()).handle
                case _:
                    scores = await engine.rerank(frame.rerank.query, list(frame.rerank.texts))
                    answer.handle = values.keep(scores.SerializeToString()).handle
    except RequestRefused as refused:
        answer.error, answer.fault = refused.sentence, refused.fault
    except ValueRefused as refused:
        answer.error, answer.fault = str(refused), pb.FAULT_BUSY
    except TimeoutError:
        answer.error, answer.fault = f"the engine did not answer within {MAX_ANSWER_S:g} s", pb.FAULT_ENGINE
    return answer


async def _count(answer: pb.Answer, count: pb.Count, engine: Engine, values: ValueStore) -> None:
    """The count, and the ids where they are asked for and the engine tells them."""
    prompt = prompt_of(count, values)
    ids = await engine.prompt_ids(prompt) if count.ids and isinstance(engine, TellsIds) else None
    if ids is None:
        answer.count = await engine.count(prompt)
        return
    answer.count = len(ids)
    told = pb.TokenIds(ids=ids)
    if told.ByteSize() <= MAX_INLINE_BYTES:
        answer.ids.CopyFrom(told)
    else:
        answer.handle = values.keep(told.SerializeToString()).handle

"""Calls with one answer each, beside the token streams: count, embed, rerank. Each has a bounded wait.

The protocol calls the number of such a call its `question`.
"""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from weft_contracts.gen import session_pb2 as pb
from weft_contracts.gen import session_pb2_grpc as pb_grpc

from weft_dataplane.client_errors import SessionBusy, SessionError, UnaryCallFailed
from weft_dataplane.embeddings import Group, embed_message, embeddings_of, groups, written
from weft_dataplane.engine import Embeddings, EmbedInput
from weft_dataplane.limits import MAX_FRAME_BYTES
from weft_dataplane.outbox import Outbox
from weft_dataplane.rerank_groups import rerank_groups
from weft_dataplane.value_client import get_value, put_value

MAX_OPEN: Final = 64
"""Unanswered calls of one session; the engine keeps the same bound."""


class UnaryCalls:
    """Calls the engine over a session and waits for its answer. Raises only UnaryCallFailed, with one sentence."""

    def __init__(self, stub: "pb_grpc.EngineAsyncStub", outbox: Outbox) -> None:
        self._stub = stub
        self._outbox = outbox
        self._open: dict[int, asyncio.Future[pb.Answer]] = {}
        self._last = 0
        self._over: str | None = None

    async def count(self, prompt: pb.Chat | str, *, timeout: float = 10.0) -> int:
        """How many tokens a chat or a text has as a prompt, by the replica's template and tokenizer."""
        return (await self._count(prompt, timeout, ids=False)).count

    async def prompt_ids(self, prompt: pb.Chat | str, *, timeout: float = 10.0) -> list[int] | None:
        """The token ids of a chat or a text as a prompt; None: the replica's engine doesn't tell them."""
        answer = await self._count(prompt, timeout, ids=True)
        if answer.HasField("ids"):
            return list(answer.ids.ids)
        if answer.handle:
            return list(pb.TokenIds.FromString(await self._fetch(answer.handle, timeout)).ids)
        return None

    async def _count(self, prompt: pb.Chat | str, timeout: float, *, ids: bool) -> pb.Answer:
        count = pb.Count()
        if isinstance(prompt, str):
            count.text = prompt
        else:
            count.chat.CopyFrom(prompt)
        if count.ByteSize() > MAX_FRAME_BYTES - 32:
            large = pb.Prompt(text=prompt) if isinstance(prompt, str) else pb.Prompt(chat=prompt)
            try:
                count = pb.Count(handle=await put_value(self._stub, large.SerializeToString(), timeout))
            except SessionError as error:
                raise UnaryCallFailed(str(error)) from None
        count.question, count.ids = self._number(), ids
        return await self._call(count.question, pb.ClientFrame(count=count), timeout)

    async def embed(self, inputs: Sequence[EmbedInput], *, timeout: float = 130.0) -> Embeddings:
        """One vector for each text or list of token ids, in order, whatever their size and number.

        They are sent in groups, one after another; `timeout` is for each group, in seconds.
        """
        vectors: list[bytes] = []
        tokens = 0
        for group in groups(inputs):
            made = await self._embed(group, timeout)
            if len(made.vectors) != len(group.inputs):
                raise UnaryCallFailed(f"the replica made {len(made.vectors)} vectors of {len(group.inputs)} inputs")
            vectors += made.vectors
            tokens += made.prompt_tokens
        return Embeddings(vectors, tokens)

    async def _embed(self, group: Group, timeout: float) -> Embeddings:
        number = self._number()
        if group.frame:
            embed = embed_message(number, group.inputs)
        else:
            large = pb.EmbedInputs(inputs=written(group.inputs))
            try:
                embed = pb.Embed(
                    question=number, handle=await put_value(self._stub, large.SerializeToString(), timeout)
                )
            except SessionError as error:
                fault = pb.FAULT_BUSY if isinstance(error, SessionBusy) else pb.FAULT_ENGINE
                raise UnaryCallFailed(str(error), fault) from None
        answer = await self._call(number, pb.ClientFrame(embed=embed), timeout)
        if answer.HasField("vectors"):
            return embeddings_of(answer.vectors)
        return embeddings_of(pb.Vectors.FromString(await self._fetch(answer.handle, timeout)))

    async def rerank(self, query: str, texts: Sequence[str], *, timeout: float = 130.0) -> pb.Scores:
        """One score for each text, in order. Each text with the query fits one frame, else it is refused.

        They are sent in groups, one after another; `timeout` is for each group, in seconds.
        """
        whole = pb.Scores()
        for group in rerank_groups(query, texts):
            rerank = pb.Rerank(question=self._number(), query=query, texts=group)
            answer = await self._call(rerank.question, pb.ClientFrame(rerank=rerank), timeout)
            made = pb.Scores.FromString(await self._fetch(answer.handle, timeout))
            if len(made.scores) != len(group):
                raise UnaryCallFailed(f"the replica made {len(made.scores)} scores for {len(group)} texts")
            whole.scores.extend(made.scores)
            whole.prompt_tokens += made.prompt_tokens
        return whole

    def take(self, answers: Iterable[pb.Answer]) -> None:
        """Hand answers to those who wait; one that came too late is dropped."""
        for answer in answers:
            waiting = self._open.pop(answer.question, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(answer)

    def fail(self, why: str) -> None:
        """No answer comes any more."""
        self._over = why
        for waiting in self._open.values():
            if not waiting.done():
                waiting.set_exception(UnaryCallFailed(why))
        self._open.clear()

    def _number(self) -> int:
        self._last += 1
        return self._last

    async def _call(self, number: int, frame: pb.ClientFrame, timeout: float) -> pb.Answer:
        if self._over is not None:
            raise UnaryCallFailed(self._over)
        if len(self._open) >= MAX_OPEN:
            raise UnaryCallFailed(f"{MAX_OPEN} questions to this replica are unanswered already", pb.FAULT_BUSY)
        waiting = self._open[number] = asyncio.get_running_loop().create_future()
        try:
            self._outbox.put(frame)
            async with asyncio.timeout(timeout):
                answer = await waiting
        except SessionError as error:
            if isinstance(error, UnaryCallFailed):
                raise
            fault = pb.FAULT_BUSY if isinstance(error, SessionBusy) else pb.FAULT_ENGINE
            raise UnaryCallFailed(str(error), fault) from None
        except TimeoutError:
            raise UnaryCallFailed(f"no answer within {timeout:g} s") from None
        finally:
            if self._open.pop(number, None) is not None and self._over is None:
                self._withdraw(number)
        if answer.error:
            raise UnaryCallFailed(answer.error, answer.fault or pb.FAULT_ENGINE)
        return answer

    def _withdraw(self, number: int) -> None:
        """Nobody waits for the answer any more: the engine need not make it."""
        with suppress(SessionError):
            self._outbox.put(pb.ClientFrame(cancel=pb.Cancel(question=number)))

    async def _fetch(self, handle: str, timeout: float) -> bytes:
        try:
            return await get_value(self._stub, handle, timeout)
        except SessionError as error:
            raise UnaryCallFailed(str(error)) from None

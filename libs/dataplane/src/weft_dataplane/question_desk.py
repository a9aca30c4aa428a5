"""Questions that a gateway asks beside the tokens, each with a bounded wait."""

import asyncio
from collections.abc import Iterable
from typing import Final

from weft_contracts.gen import session_pb2 as pb
from weft_contracts.gen import session_pb2_grpc as pb_grpc

from weft_dataplane.client_errors import QuestionFailed, SessionError
from weft_dataplane.limits import MAX_FRAME_BYTES
from weft_dataplane.outbox import Outbox
from weft_dataplane.value_client import get_value, put_value

MAX_OPEN: Final = 64
"""Unanswered questions of one session; the engine keeps the same bound."""


class QuestionDesk:
    """Asks over the session and waits for the answer. Every failure is a QuestionFailed with one sentence."""

    def __init__(self, stub: "pb_grpc.EngineAsyncStub", outbox: Outbox) -> None:
        self._stub = stub
        self._outbox = outbox
        self._open: dict[int, asyncio.Future[pb.Answer]] = {}
        self._last = 0
        self._over: str | None = None

    async def count(self, prompt: pb.Chat | str, *, timeout: float = 10.0) -> int:
        """How many tokens a chat or a text has as a prompt, by the replica's template and tokenizer."""
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
                raise QuestionFailed(str(error)) from None
        count.question = self._number()
        return (await self._ask(count.question, pb.ClientFrame(count=count), timeout)).count

    async def embed(self, texts: list[str], *, timeout: float = 60.0) -> pb.Vectors:
        """One vector for each text. All texts together fit one frame."""
        embed = pb.Embed(question=self._number(), texts=texts)
        answer = await self._ask(embed.question, pb.ClientFrame(embed=embed), timeout)
        return pb.Vectors.FromString(await self._fetch(answer.handle, timeout))

    async def rerank(self, query: str, texts: list[str], *, timeout: float = 60.0) -> pb.Scores:
        """One score for each text. Query and texts together fit one frame."""
        rerank = pb.Rerank(question=self._number(), query=query, texts=texts)
        answer = await self._ask(rerank.question, pb.ClientFrame(rerank=rerank), timeout)
        return pb.Scores.FromString(await self._fetch(answer.handle, timeout))

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
                waiting.set_exception(QuestionFailed(why))
        self._open.clear()

    def _number(self) -> int:
        self._last += 1
        return self._last

    async def _ask(self, question: int, frame: pb.ClientFrame, timeout: float) -> pb.Answer:
        if self._over is not None:
            raise QuestionFailed(self._over)
        if len(self._open) >= MAX_OPEN:
            raise QuestionFailed(f"{MAX_OPEN} questions to this replica are unanswered already")
        waiting = self._open[question] = asyncio.get_running_loop().create_future()
        try:
            self._outbox.put(frame)
            async with asyncio.timeout(timeout):
                answer = await waiting
        except SessionError as error:
            if isinstance(error, QuestionFailed):
                raise
            raise QuestionFailed(str(error)) from None
        except TimeoutError:
            raise QuestionFailed(f"no answer within {timeout:g} s") from None
        finally:
            self._open.pop(question, None)
        if answer.error:
            raise QuestionFailed(answer.error)
        return answer

    async def _fetch(self, handle: str, timeout: float) -> bytes:
        try:
            return await get_value(self._stub, handle, timeout)
        except SessionError as error:
            raise QuestionFailed(str(error)) from None

"""The echo's adapter."""

from typing import Self

from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import Embeddings, EmbedInput, Ending, EngineFacts, EngineLoad, RequestRefused, Ticket
from weft_engine.launch import Launch


class Echo:
    """Answers each request at once, so nothing ever runs or waits."""

    def __init__(self, launch: Launch) -> None:
        times = launch.engine_args.get("times", 1)
        assert isinstance(times, int)  # its profile says so
        self._times = times
        self._answered = 0
        self._facts = EngineFacts("echo", "1.0", launch.context_tokens, launch.concurrency)

    @classmethod
    async def start(cls, launch: Launch) -> Self:
        """Nothing to load."""
        return cls(launch)

    @property
    def facts(self) -> EngineFacts:
        return self._facts

    def submit(self, request: pb.Submit, prompt: pb.Prompt, ticket: Ticket) -> None:
        words = self._words(prompt)
        ticket.emit(" ".join(words * self._times), list(range(len(words))))
        self._answered += 1
        ticket.finish(Ending(pb.FINISH_STOP, len(words), len(words) * self._times))

    def cancel(self, ticket: Ticket) -> None:
        """An ended request is no error."""

    def load(self) -> EngineLoad:
        return EngineLoad(0, 0, 0.0, self._answered)

    async def count(self, prompt: pb.Prompt) -> int:
        return len(self._words(prompt))

    async def embed(self, inputs: list[EmbedInput]) -> Embeddings:
        raise RequestRefused(pb.FAULT_BAD_REQUEST, "the echo makes no embeddings")

    async def rerank(self, query: str, texts: list[str]) -> pb.Scores:
        raise RequestRefused(pb.FAULT_BAD_REQUEST, "the echo does not rerank")

    async def close(self) -> None:
        """Nothing is held."""

    def _words(self, prompt: pb.Prompt) -> list[str]:
        return prompt.chat.messages[-1].content.split() if prompt.HasField("chat") else prompt.text.split()

"""What the session protocol asks of an engine: the small protocol that every adapter implements."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from weft_contracts.gen import session_pb2 as pb

from weft_dataplane.ticket import Ticket


class EngineLoad(NamedTuple):
    """How busy an engine is, at the moment of asking."""

    running: int
    waiting: int
    kv_used: float
    """0..1 of the KV cache"""
    steps: int
    """engine steps since the start; stands still in a stall"""
    trouble: str = ""
    """why it can't do its work now, as a sentence, though its process is well; empty: it can"""


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """What a loaded engine is; it doesn't change while the process lives."""

    name: str
    version: str
    context_tokens: int
    """prompt and answer together, per request"""
    concurrency: int
    """requests that run at once; more wait inside the engine"""
    canary: str = ""
    """the text that it is asked with by its host, before it is ready and when idle; empty: the host's own"""


EmbedInput = str | list[int]
"""A text to embed, or its token ids."""


class Embeddings(NamedTuple):
    """What embedding made."""

    vectors: list[bytes]
    """one for each input, in order: 32-bit floats, little-endian"""
    prompt_tokens: int
    """of all inputs together"""


class RequestRefused(Exception):
    """A request that cannot run; the sentence is meant for the caller.

    `fault` tells the gateway what to do with it: give up, go elsewhere, wait. `field` is the Submit's own, or
    the sampling's, where one is at fault.
    """

    def __init__(self, fault: pb.Fault.ValueType, sentence: str, field: str = "") -> None:
        super().__init__(sentence)
        self.field = field
        self.fault = fault
        self.sentence = sentence


class LoadFailed(Exception):
    """An engine that cannot start; `permanent` when another try would fail the same way.

    `outside`: all that it lacks is something elsewhere, such as a server that is away. Then it is tried for as long as
    it is wanted, ever more seldom, instead of a few times.
    """

    def __init__(self, sentence: str, *, permanent: bool, outside: bool = False) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.permanent = permanent
        self.outside = outside


class Engine(Protocol):
    """A loaded engine. All methods are called on the event loop's thread and none may block it.

    Outputs go through the request's ticket, also on the loop's thread. What an engine emits within one
    turn of the loop leaves as one frame, so it hands over a whole step at once.
    """

    @property
    def facts(self) -> EngineFacts: ...

    def submit(self, request: pb.Submit, prompt: pb.Prompt, ticket: Ticket) -> None:
        """Start or queue a request. `prompt` is the request's prompt, a handle already resolved.

        Raises RequestRefused. Every ticket taken must end by its `finish`.
        """
        ...

    def cancel(self, ticket: Ticket) -> None:
        """End a request within one step, with FINISH_CANCELLED. An ended one is no error."""
        ...

    def load(self) -> EngineLoad:
        """How busy the engine is now. Cheap: it is asked once a frame."""
        ...

    async def count(self, prompt: pb.Prompt) -> int:
        """How many tokens the prompt has, by this engine's template and tokenizer. Raises RequestRefused."""
        ...

    async def embed(self, inputs: list[EmbedInput]) -> Embeddings:
        """One vector for each input; there is at least one, and none is empty.

        Raises RequestRefused where the model can't. Cancelled when nobody waits any more.
        """
        ...

    async def rerank(self, query: str, texts: list[str]) -> pb.Scores:
        """One score for each text. Raises RequestRefused where the model can't."""
        ...

    async def close(self) -> None:
        """Give back what the engine holds. Called once; running requests may end without a word."""
        ...


@runtime_checkable
class TellsIds(Protocol):
    """An engine that can tell the token ids of a prompt, which others hold their own rendering against."""

    async def prompt_ids(self, prompt: pb.Prompt) -> list[int] | None:
        """The ids that a request with this prompt begins with; None: it can't tell. Raises RequestRefused."""
        ...


@runtime_checkable
class OwnCanary(Protocol):
    """An engine that says itself how it is asked whether it still works: one whose requests cost money, say.

    Of every other engine its host asks one token, else one vector, else one score, before it is ready and after a
    minute without a step. And of such a one time without a step says nothing, since its work may be done elsewhere:
    its host's own looks at it count as steps, so it bounds its requests itself. One that only wants to be asked with
    another text says so in its facts.
    """

    async def canary(self) -> None:
        """Wait until the engine has shown that it works. Raises what went wrong where it says that it doesn't."""
        ...

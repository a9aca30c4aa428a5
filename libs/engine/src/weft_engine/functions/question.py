"""What a function that writes is asked."""

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import RequestRefused


class Cancelled(Exception):
    """Nobody waits for the answer any more."""


class Said(NamedTuple):
    """One message of a chat."""

    role: str
    """`system`, `user`, `assistant` or what the client named."""
    content: str


@dataclass(frozen=True, slots=True)
class Question:
    """One request. It is read on a thread of its own; all but cancelling is frozen."""

    messages: tuple[Said, ...]
    """Of a chat; empty where the client gave a text to go on with."""
    text: str
    """That text; empty with a chat."""
    max_tokens: int
    """Pieces that are taken at most: what the client allows, or what the context has left."""
    temperature: float | None
    """None: the client said nothing."""
    seed: int | None
    sampling: pb.Sampling
    """All that the client asked of the draw. What `Functions.honours` doesn't name was not asked."""
    _signs: list[None] = field(default_factory=list[None])
    _cancelled: threading.Event = field(default_factory=threading.Event)
    _on_cancel: list[Callable[[], object]] = field(default_factory=list[Callable[[], object]])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def last(self) -> str:
        """What was said last."""
        return self.messages[-1].content if self.messages else self.text

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits any more. After each piece Weft looks itself; a long computation may look between."""
        return self._cancelled.is_set()

    def check(self) -> None:
        """Raises Cancelled where nobody waits any more."""
        if self.cancelled:
            raise Cancelled

    def on_cancel(self, call: Callable[[], object]) -> None:
        """Have something called when nobody waits any more, at once where that is so already. It may come from
        another thread: a child's `kill`, a connection's `close`."""
        with self._lock:
            if not self._cancelled.is_set():
                self._on_cancel.append(call)
                return
        call()

    def working(self) -> None:
        """Say that it gets on, where a piece takes long: an engine whose requests run without a sign for half a
        minute, or for ten while it computes, counts as stalled. Raises Cancelled where nobody waits any more."""
        self._signs.append(None)
        self.check()

    @property
    def signs(self) -> int:
        """How often it was said."""
        return len(self._signs)

    def cancel(self) -> None:
        """Nobody waits any more. For the engine, not for functions."""
        with self._lock:
            calls = [] if self._cancelled.is_set() else list(self._on_cancel)
            self._cancelled.set()
        for call in calls:
            with contextlib.suppress(Exception):
                call()


def question_of(request: pb.Submit, prompt: pb.Prompt, max_tokens: int) -> Question:
    """The question that a Submit asks."""
    sampling = request.sampling
    return Question(
        tuple(Said(each.role, each.content) for each in prompt.chat.messages),
        prompt.text,
        max_tokens,
        sampling.temperature if sampling.HasField("temperature") else None,
        sampling.seed if sampling.HasField("seed") else None,
        sampling,
    )


def words_of(prompt: pb.Prompt) -> str:
    """All text of a prompt, for counting. Raises RequestRefused for token ids, which mean nothing to functions."""
    match prompt.WhichOneof("prompt"):
        case "tokens":
            sentence = "this engine has no tokenizer: give the prompt as text, not as token ids"
            raise RequestRefused(pb.FAULT_BAD_REQUEST, sentence, "prompt")
        case "chat":
            return "\n".join(message.content for message in prompt.chat.messages)
        case _:
            return prompt.text

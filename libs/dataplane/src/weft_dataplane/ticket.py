"""A running request as the engine sees it: where its outputs go, until its end."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from weft_contracts.gen import session_pb2 as pb


class Ending(NamedTuple):
    """How a request ended, for its last output."""

    finish: pb.Finish.ValueType
    prompt_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    fault: pb.Fault.ValueType = pb.FAULT_UNSPECIFIED
    error: str = ""
    field: str = ""
    """The Submit's field that is at fault, with FAULT_BAD_REQUEST."""


Scores = Sequence[pb.TokenScore]
Segment = tuple[str, Sequence[int], Scores]
"""Text, exactly the token ids that make it, and their scores where the request asked for them."""


class Outlet(Protocol):
    """The session behind a ticket."""

    def touch(self, ticket: "Ticket") -> None:
        """This ticket has something to send."""
        ...


class Ticket:
    """One request of one session. Its engine emits into it; what waits unsent is merged, never queued.

    Text and token ids belong together: an engine holds ids back until the text they make is complete, so a
    request can go on elsewhere from any output. Nothing goes out after `finish`.
    """

    __slots__ = ("_outlet", "ending", "number", "on_end", "segments", "thoughts", "touched")

    def __init__(self, number: int, outlet: Outlet) -> None:
        self.number = number
        self._outlet = outlet
        self.segments: list[Segment] = []
        self.thoughts: list[str] = []
        """What the model thought; it goes out before the segments."""
        self.ending: Ending | None = None
        self.touched = False
        self.on_end: Callable[[Ending], None] | None = None
        """Called once, with the ending, for what records it."""

    def emit(self, text: str, token_ids: Sequence[int], scores: Scores = ()) -> None:
        """Hand over text and the ids that make it. Call it on the loop's thread."""
        if self.ending is not None:
            return
        self.segments.append((text, token_ids, scores))
        if not self.touched:
            self.touched = True
            self._outlet.touch(self)

    def think(self, text: str) -> None:
        """Hand over what the model thinks, where the request wants it apart. Call it on the loop's thread."""
        if self.ending is not None:
            return
        self.thoughts.append(text)
        if not self.touched:
            self.touched = True
            self._outlet.touch(self)

    def finish(self, ending: Ending) -> None:
        """End the request. A second end is ignored: a request ends once."""
        if self.ending is not None:
            return
        self.ending = ending
        if self.on_end is not None:
            self.on_end(ending)
        if not self.touched:
            self.touched = True
            self._outlet.touch(self)

    def fail(self, fault: pb.Fault.ValueType, sentence: str, field: str = "") -> None:
        """End the request with FINISH_ERROR and one sentence."""
        self.finish(Ending(pb.FINISH_ERROR, fault=fault, error=sentence, field=field))

"""OpenAI's responses: one answer, whose items are texts and calls of functions."""

from collections.abc import Sequence

from weft_gateway.domain.answers.choice_encoder import FinishReason, Scores
from weft_gateway.domain.answers.response_envelope import ResponseEnvelope, Status
from weft_gateway.domain.answers.response_items import CallItem, Item, MessageItem, ReasoningItem
from weft_gateway.domain.answers.tool_call_parser import ToolCallDeltas, ToolCallParser


class ResponseEncoder:
    """Text alone. The events of a stream are counted, so each one is made, though without an object."""

    __slots__ = ("_envelope", "_items")
    more_than_text = True
    before = b""
    after = b""

    def __init__(self, envelope: ResponseEnvelope) -> None:
        self._envelope = envelope
        self._items: list[Item] = []
        """The last one is being made."""

    def opening(self) -> bytes:
        return self._envelope.opening()

    def thought(self, text: str) -> bytes:
        if self._items and isinstance(last := self._items[-1], ReasoningItem):
            return last.add_text(text)
        reasoning = ReasoningItem(self._envelope, len(self._items))
        return self._next(reasoning) + reasoning.add_text(text)

    def event(self, text: str, scores: Scores) -> bytes:
        if self._items and isinstance(last := self._items[-1], MessageItem):
            return last.add_text(text, scores)
        message = self._new_message()
        return self._next(message) + message.add_text(text, scores)

    def closing(self, finish: FinishReason) -> bytes:
        said = [item for item in self._items if not isinstance(item, ReasoningItem)]
        made = b"" if said or (finish == "length" and self._items) else self._next(self._new_message())
        *whole, last = self._items
        status: Status = "incomplete" if finish == "length" else "completed"
        self._envelope.items = [*(item.json("completed") for item in whole), last.json(status)]
        self._envelope.status = status
        return made + last.closing(status)

    def whole(self, text: str, scores: Scores, finish: FinishReason) -> bytes:
        """What its stream would end with."""
        if text or scores:
            self.event(text, scores)
        self.closing(finish)
        return b",".join(self._envelope.items)

    def restart(self) -> None:
        self._items.clear()
        self._envelope.restart()

    def _new_message(self) -> MessageItem:
        return MessageItem(self._envelope, len(self._items))

    def _next(self, item: Item) -> bytes:
        """End the last item and begin another."""
        ended = self._items[-1].closing("completed") if self._items else b""
        self._items.append(item)
        return ended + item.opening()


class ToolCallingResponseEncoder(ResponseEncoder):
    """Text, or calls of functions. A call that was cut short is one with the arguments so far, and incomplete."""

    __slots__ = ("_names", "_or_json", "_parser")

    def __init__(self, envelope: ResponseEnvelope, names: Sequence[str], *, or_json: bool) -> None:
        """See ToolCallParser."""
        super().__init__(envelope)
        self._names = names
        self._or_json = or_json
        self._parser = ToolCallParser(names, or_json=or_json)

    def event(self, text: str, scores: Scores) -> bytes:
        plain, deltas = self._parser.feed(text)
        return (super().event(plain, ()) if plain else b"") + self._called(deltas)

    def closing(self, finish: FinishReason) -> bytes:
        rest = self._called(self._parser.rest())
        return rest + super().closing("length" if self._parser.cut else finish)

    def restart(self) -> None:
        super().restart()
        self._parser = ToolCallParser(self._names, or_json=self._or_json)

    def _called(self, deltas: ToolCallDeltas) -> bytes:
        made = b""
        for _, name, arguments in deltas:
            if name is not None:
                made += self._next(CallItem(self._envelope, len(self._items), name))
            if arguments and isinstance(call := self._items[-1], CallItem):
                made += call.add_arguments(arguments)
        return made

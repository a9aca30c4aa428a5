"""The items of a response's output, each with the events that tell of it."""

from typing import Any, Protocol

from weft_gateway.domain.answers.choice_encoder import Scores, encode
from weft_gateway.domain.answers.logprobs import score_entries
from weft_gateway.domain.answers.response_envelope import ResponseEnvelope, Status


class Item(Protocol):
    """One item of an output, while it is made."""

    def opening(self) -> bytes:
        """The events that it begins with."""
        ...

    def closing(self, status: Status) -> bytes:
        """The events that it ends with."""
        ...

    def json(self, status: Status) -> bytes:
        """The item as JSON."""
        ...


class _TextItem:
    """An item of one text: what all of its events say of where it stands."""

    __slots__ = ("_at", "_delta", "_envelope", "_head", "_place", "_texts")

    def __init__(self, envelope: ResponseEnvelope, place: int, prefix: str, head: bytes, delta: bytes) -> None:
        """`prefix` begins its id, `head` follows that in its JSON; `delta` is the event of more text."""
        id = f"{prefix}_{envelope.number}_{place}".encode()
        self._envelope = envelope
        self._place = place
        self._head = b'{"id":"%b",%b' % (id, head)
        self._at = b'"item_id":"%b","output_index":%d,"content_index":0,' % (id, place)
        self._delta = b'event: %b\ndata: {"type":"%b",%b"delta":' % (delta, delta, self._at)
        self._texts: list[str] = []


class MessageItem(_TextItem):
    """What the model says."""

    __slots__ = ("_entries",)

    def __init__(self, envelope: ResponseEnvelope, place: int) -> None:
        """`place`: among the items."""
        head = b'"type":"message","role":"assistant",'
        super().__init__(envelope, place, "msg", head, b"response.output_text.delta")
        self._entries: list[dict[str, Any]] = []
        """Log probabilities."""

    def opening(self) -> bytes:
        made = _item_event(self._envelope, b"added", self._place, self._head + b'"status":"in_progress","content":[]}')
        return made + self._part_event(b"added", _text_part("", b"[]"))

    def add_text(self, text: str, scores: Scores) -> bytes:
        """More of it, as an event."""
        self._texts.append(text)
        if not scores:
            return self._envelope.counted(self._delta + encode(text) + b',"logprobs":[]')
        entries = score_entries(scores)
        self._entries += entries
        return self._envelope.counted(self._delta + encode(text) + b',"logprobs":' + encode(entries))

    def closing(self, status: Status) -> bytes:
        text, logprobs = "".join(self._texts), encode(self._entries)
        done = self._at + b'"text":%b,"logprobs":%b' % (encode(text), logprobs)
        made = self._envelope.event(b"response.output_text.done", done)
        made += self._part_event(b"done", _text_part(text, logprobs))
        return made + _item_event(self._envelope, b"done", self._place, self.json(status))

    def json(self, status: Status) -> bytes:
        part = _text_part("".join(self._texts), encode(self._entries))
        return self._head + b'"status":"%b","content":[%b]}' % (status.encode(), part)

    def _part_event(self, what: bytes, part: bytes) -> bytes:
        return self._envelope.event(b"response.content_part." + what, self._at + b'"part":' + part)


class ReasoningItem(_TextItem):
    """What the model thought."""

    __slots__ = ()

    def __init__(self, envelope: ResponseEnvelope, place: int) -> None:
        """`place`: among the items."""
        super().__init__(envelope, place, "rs", b'"type":"reasoning","summary":[],', b"response.reasoning_text.delta")

    def opening(self) -> bytes:
        shown = self._head + b'"content":[],"status":"in_progress"}'
        return _item_event(self._envelope, b"added", self._place, shown)

    def add_text(self, text: str) -> bytes:
        """More of it, as an event."""
        self._texts.append(text)
        return self._envelope.counted(self._delta + encode(text))

    def closing(self, status: Status) -> bytes:
        done = self._at + b'"text":' + encode("".join(self._texts))
        made = self._envelope.event(b"response.reasoning_text.done", done)
        return made + _item_event(self._envelope, b"done", self._place, self.json(status))

    def json(self, status: Status) -> bytes:
        content = b'"content":[{"type":"reasoning_text","text":%b}],' % encode("".join(self._texts))
        return self._head + content + b'"status":"%b"}' % status.encode()


class CallItem:
    """The call of a function."""

    __slots__ = ("_arguments", "_at", "_envelope", "_head", "_place")

    def __init__(self, envelope: ResponseEnvelope, place: int, name: str) -> None:
        """`place`: among the items."""
        id = f"fc_{envelope.number}_{place}".encode()
        self._envelope = envelope
        self._place = place
        self._head = b'{"id":"%b","type":"function_call","call_id":"call_%b_%d","name":%b,' % (
            id,
            envelope.number.encode(),
            place,
            encode(name),
        )
        self._at = b'"item_id":"%b","output_index":%d,' % (id, place)
        self._arguments: list[str] = []

    def opening(self) -> bytes:
        shown = self._head + b'"arguments":"","status":"in_progress"}'
        return _item_event(self._envelope, b"added", self._place, shown)

    def add_arguments(self, arguments: str) -> bytes:
        """More of its arguments, as an event."""
        self._arguments.append(arguments)
        members = self._at + b'"delta":' + encode(arguments)
        return self._envelope.event(b"response.function_call_arguments.delta", members)

    def closing(self, status: Status) -> bytes:
        members = self._at + b'"arguments":' + encode("".join(self._arguments))
        made = self._envelope.event(b"response.function_call_arguments.done", members)
        return made + _item_event(self._envelope, b"done", self._place, self.json(status))

    def json(self, status: Status) -> bytes:
        return self._head + b'"arguments":%b,"status":"%b"}' % (encode("".join(self._arguments)), status.encode())


def _text_part(text: str, logprobs: bytes) -> bytes:
    return b'{"type":"output_text","text":%b,"annotations":[],"logprobs":%b}' % (encode(text), logprobs)


def _item_event(envelope: ResponseEnvelope, what: bytes, place: int, item: bytes) -> bytes:
    return envelope.event(b"response.output_item." + what, b'"output_index":%d,"item":%b' % (place, item))

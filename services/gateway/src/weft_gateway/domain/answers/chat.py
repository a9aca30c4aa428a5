"""OpenAI's chat completion answers."""

from weft_gateway.domain.answers.call_reader import CallReader
from weft_gateway.domain.answers.form import Envelope, FinishReason, Scores, encode
from weft_gateway.domain.answers.scores import chat_logprobs

CHAT = b"chat.completion.chunk", b"chat.completion"


class ChatChoice:
    """Templates of one choice: text alone."""

    __slots__ = ("_choice", "_index", "_tail", "after", "before")
    crafted = False

    def __init__(self, envelope: Envelope, index: int) -> None:
        self._index = index
        self._choice = envelope.event_head + b'%d,"delta":' % index
        self._tail = envelope.event_tail
        self.before = self._choice + b'{"content":'
        self.after = b'},"logprobs":null,"finish_reason":null' + self._tail

    def opening(self) -> bytes:
        return self._choice + b'{"role":"assistant","content":""' + self.after

    def event(self, text: str, scores: Scores) -> bytes:
        return self.before + encode(text) + self.after

    def closing(self, finish: FinishReason) -> bytes:
        return self._choice + b'{},"logprobs":null,"finish_reason":"%b"' % finish.encode() + self._tail

    def whole(self, text: str, scores: Scores, finish: FinishReason) -> bytes:
        return self._whole(encode(text), b"", b"null", finish)

    def restart(self) -> None:
        pass

    def _whole(self, content: bytes, more: bytes, logprobs: bytes, finish: FinishReason) -> bytes:
        return (
            b'{"index":%d,"message":{"role":"assistant","content":%b,"refusal":null%b},"logprobs":%b,'
            b'"finish_reason":"%b"}'
        ) % (self._index, content, more, logprobs, finish.encode())


class ScoredChatChoice(ChatChoice):
    """Text with log probabilities."""

    __slots__ = ()
    crafted = True

    def event(self, text: str, scores: Scores) -> bytes:
        return self.before + encode(text) + b'},"logprobs":%b,"finish_reason":null' % chat_logprobs(scores) + self._tail

    def whole(self, text: str, scores: Scores, finish: FinishReason) -> bytes:
        return self._whole(encode(text), b"", chat_logprobs(scores), finish)


class CallingChatChoice(ChatChoice):
    """Text, or the call of a tool: what begins with a brace is a call."""

    __slots__ = ("_call_id", "_reader")
    crafted = True

    def __init__(self, envelope: Envelope, index: int) -> None:
        super().__init__(envelope, index)
        self._call_id = f"call-{envelope.id}-{index}"
        self._reader = CallReader()

    def opening(self) -> bytes:
        content = b"null" if self._reader.name is not None else b'""'
        return self._choice + b'{"role":"assistant","content":' + content + self.after

    def event(self, text: str, scores: Scores) -> bytes:
        was_named = self._reader.name is not None
        said, arguments = self._reader.feed(text)
        made = self.before + encode(said) + self.after if said else b""
        if self._reader.name is not None and (arguments or not was_named):
            function = b'"function":{"arguments":%b}' % encode(arguments)
            if not was_named:
                function = self._named(self._reader.name, arguments)
            made += self._choice + b'{"tool_calls":[{"index":0,%b}]' % function + self.after
        return made

    def closing(self, finish: FinishReason) -> bytes:
        rest = self._reader.rest()
        said = self.before + encode(rest) + self.after if rest else b""
        return said + super().closing("tool_calls" if self._reader.complete and finish == "stop" else finish)

    def whole(self, text: str, scores: Scores, finish: FinishReason) -> bytes:
        reader = CallReader()
        said, arguments = reader.feed(text)
        if reader.name is None:
            return self._whole(encode(said + reader.rest()), b"", b"null", finish)
        call = b',"tool_calls":[{%b}]' % self._named(reader.name, arguments)
        return self._whole(b"null", call, b"null", "tool_calls" if reader.complete and finish == "stop" else finish)

    def restart(self) -> None:
        self._reader = CallReader()

    def _named(self, name: str, arguments: str) -> bytes:
        return b'"id":"%b","type":"function","function":{"name":%b,"arguments":%b}' % (
            self._call_id.encode(),
            encode(name),
            encode(arguments),
        )

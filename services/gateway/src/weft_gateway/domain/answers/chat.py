"""OpenAI's chat completion answers."""

from collections.abc import Sequence

from weft_gateway.domain.answers.choice_encoder import CompletionEnvelope, FinishReason, Scores, encode
from weft_gateway.domain.answers.logprobs import chat_logprobs
from weft_gateway.domain.answers.tool_call_parser import ToolCallDeltas, ToolCallParser

CHAT = b"chat.completion.chunk", b"chat.completion"


class ChatEncoder:
    """Templates of one choice: text alone."""

    __slots__ = ("_choice", "_index", "_tail", "_thought", "after", "before")
    more_than_text = False

    def __init__(self, envelope: CompletionEnvelope, index: int) -> None:
        self._index = index
        self._choice = envelope.event_head + b'%d,"delta":' % index
        self._tail = envelope.event_tail
        self._thought = b""
        """All that was thought, as a member of a message that is not streamed."""
        self.before = self._choice + b'{"content":'
        self.after = b'},"logprobs":null,"finish_reason":null' + self._tail

    def opening(self) -> bytes:
        return self._choice + b'{"role":"assistant","content":""' + self.after

    def thought(self, text: str) -> bytes:
        member = b'"reasoning_content":%b' % encode(text)
        self._thought = b"," + member
        return self._choice + b"{" + member + self.after

    def event(self, text: str, scores: Scores) -> bytes:
        return self.before + encode(text) + self.after

    def closing(self, finish: FinishReason) -> bytes:
        return self._choice + b'{},"logprobs":null,"finish_reason":"%b"' % finish.encode() + self._tail

    def whole(self, text: str, scores: Scores, finish: FinishReason) -> bytes:
        return self._whole(encode(text), b"", b"null", finish)

    def restart(self) -> None:
        self._thought = b""

    def _whole(self, content: bytes, more: bytes, logprobs: bytes, finish: FinishReason) -> bytes:
        return (
            b'{"index":%d,"message":{"role":"assistant","content":%b,"refusal":null%b},"logprobs":%b,'
            b'"finish_reason":"%b"}'
        ) % (self._index, content, self._thought + more, logprobs, finish.encode())


class LogprobsChatEncoder(ChatEncoder):
    """Text with log probabilities."""

    __slots__ = ()
    more_than_text = True

    def event(self, text: str, scores: Scores) -> bytes:
        return self.before + encode(text) + b'},"logprobs":%b,"finish_reason":null' % chat_logprobs(scores) + self._tail

    def whole(self, text: str, scores: Scores, finish: FinishReason) -> bytes:
        return self._whole(encode(text), b"", chat_logprobs(scores), finish)


class ToolCallingChatEncoder(ChatEncoder):
    """Text, or calls of tools. A call that was cut short is a call with the arguments so far, and never text."""

    __slots__ = ("_call_id", "_names", "_or_json", "_parser")
    more_than_text = True

    def __init__(self, envelope: CompletionEnvelope, index: int, names: Sequence[str], *, or_json: bool) -> None:
        super().__init__(envelope, index)
        self._call_id = f"call-{envelope.id}-{index}"
        self._names = names
        self._or_json = or_json
        self._parser = self._new_parser()

    def opening(self) -> bytes:
        content = b"null" if self._parser.called else b'""'
        return self._choice + b'{"role":"assistant","content":' + content + self.after

    def event(self, text: str, scores: Scores) -> bytes:
        plain, deltas = self._parser.feed(text)
        return (self.before + encode(plain) + self.after if plain else b"") + self._events(deltas)

    def closing(self, finish: FinishReason) -> bytes:
        rest = self._events(self._parser.rest())
        return rest + super().closing(_ending(self._parser, finish))

    def whole(self, text: str, scores: Scores, finish: FinishReason) -> bytes:
        parser = self._new_parser()
        plain, deltas = parser.feed(text)
        calls: list[tuple[str, list[str]]] = []
        for delta in (*deltas, *parser.rest()):
            if delta.name is not None:
                calls.append((delta.name, []))
            calls[delta.call][1].append(delta.arguments)
        if not calls:
            return self._whole(encode(plain), b"", b"null", _ending(parser, finish))
        made = b",".join(
            b"{%b}" % self._named(index, name, "".join(arguments)) for index, (name, arguments) in enumerate(calls)
        )
        return self._whole(b"null", b',"tool_calls":[%b]' % made, b"null", _ending(parser, finish))

    def restart(self) -> None:
        super().restart()
        self._parser = self._new_parser()

    def _new_parser(self) -> ToolCallParser:
        return ToolCallParser(self._names, or_json=self._or_json)

    def _events(self, deltas: ToolCallDeltas) -> bytes:
        made = b""
        for index, name, arguments in deltas:
            if name is None:
                members = b'"function":{"arguments":%b}' % encode(arguments)
            else:
                members = self._named(index, name, arguments)
            made += self._choice + b'{"tool_calls":[{"index":%d,%b}]' % (index, members) + self.after
        return made

    def _named(self, index: int, name: str, arguments: str) -> bytes:
        return b'"id":"%b-%d","type":"function","function":{"name":%b,"arguments":%b}' % (
            self._call_id.encode(),
            index,
            encode(name),
            encode(arguments),
        )


def _ending(parser: ToolCallParser, finish: FinishReason) -> FinishReason:
    """A call that isn't whole was cut, whatever cut it."""
    if parser.cut or finish == "length":
        return "length"
    return "tool_calls" if parser.called else finish

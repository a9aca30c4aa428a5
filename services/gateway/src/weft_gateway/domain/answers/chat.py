"""OpenAI's chat completion answers."""

import msgspec

from weft_gateway.domain.answers.form import DONE, FinishReason, Usage

_encode = msgspec.json.Encoder().encode


class ChatForm:
    """Templates of one chat completion."""

    __slots__ = ("_choice", "_head", "_usage_null", "_with_usage", "after", "before")

    def __init__(self, id: str, created: int, model: str, digest: str, include_usage: bool) -> None:
        self._head = b'"id":"%b","created":%d,"model":%b,"system_fingerprint":"%b",' % (
            id.encode(),
            created,
            _encode(model),
            digest.encode(),
        )
        self._with_usage = include_usage
        self._usage_null = b',"usage":null' if include_usage else b""
        self._choice = b'data: {"object":"chat.completion.chunk",%b"choices":[{"index":0,"delta":' % self._head
        self.before = self._choice + b'{"content":'
        self.after = b'},"logprobs":null,"finish_reason":null}]%b}\n\n' % self._usage_null

    def opening(self) -> bytes:
        return self._choice + b'{"role":"assistant","content":""' + self.after

    def closing(self, finish: FinishReason, usage: Usage) -> bytes:
        end = self._choice + b'{},"logprobs":null,"finish_reason":"%b"}]%b}\n\n' % (
            finish.encode(),
            self._usage_null,
        )
        if self._with_usage:
            end += b'data: {"object":"chat.completion.chunk",%b"choices":[],"usage":%b}\n\n' % (
                self._head,
                usage.json(),
            )
        return end + DONE

    def whole(self, text: str, finish: FinishReason, usage: Usage) -> bytes:
        return (
            b'{"object":"chat.completion",%b"choices":[{"index":0,"message":{"role":"assistant","content":%b,'
            b'"refusal":null},"logprobs":null,"finish_reason":"%b"}],"usage":%b}'
        ) % (self._head, _encode(text), finish.encode(), usage.json())

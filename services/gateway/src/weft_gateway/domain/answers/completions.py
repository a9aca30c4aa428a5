"""OpenAI's text completion answers."""

import msgspec

from weft_gateway.domain.answers.form import DONE, FinishReason, Usage

_encode = msgspec.json.Encoder().encode


class CompletionForm:
    """Templates of one text completion."""

    __slots__ = ("_head", "_usage_null", "_with_usage", "after", "before")

    def __init__(self, id: str, created: int, model: str, digest: str, include_usage: bool) -> None:
        self._head = (b'"id":"%b","object":"text_completion","created":%d,"model":%b,"system_fingerprint":"%b",') % (
            id.encode(),
            created,
            _encode(model),
            digest.encode(),
        )
        self._with_usage = include_usage
        self._usage_null = b',"usage":null' if include_usage else b""
        self.before = b'data: {%b"choices":[{"index":0,"text":' % self._head
        self.after = b',"logprobs":null,"finish_reason":null}]%b}\n\n' % self._usage_null

    def opening(self) -> bytes:
        return b""

    def closing(self, finish: FinishReason, usage: Usage) -> bytes:
        end = self.before + b'"","logprobs":null,"finish_reason":"%b"}]%b}\n\n' % (
            finish.encode(),
            self._usage_null,
        )
        if self._with_usage:
            end += b'data: {%b"choices":[],"usage":%b}\n\n' % (self._head, usage.json())
        return end + DONE

    def whole(self, text: str, finish: FinishReason, usage: Usage) -> bytes:
        return (b'{%b"choices":[{"index":0,"text":%b,"logprobs":null,"finish_reason":"%b"}],"usage":%b}') % (
            self._head,
            _encode(text),
            finish.encode(),
            usage.json(),
        )

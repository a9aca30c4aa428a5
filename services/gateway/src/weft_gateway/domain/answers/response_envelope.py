"""The response object of OpenAI's Responses API around its items, and the count of its stream's events."""

from collections.abc import Sequence
from typing import Literal

from weft_gateway.domain.answers.choice_encoder import Usage, encode
from weft_gateway.domain.refused import Refused

Status = Literal["in_progress", "completed", "incomplete", "failed"]
_OPENING_EVENTS = 2


class ResponseEnvelope:
    """Implements form.AnswerEnvelope for a response."""

    __slots__ = ("_echo", "_head", "_sequence", "items", "number", "status")

    def __init__(self, number: str, created: int, model: str, echo: bytes) -> None:
        """`echo`: what the response shows of its request, as members with a comma behind each."""
        self.number = number
        self.items: Sequence[bytes] = ()
        """The output, once it has ended."""
        self.status: Status = "completed"
        self._head = b'"id":"resp_%b","object":"response","created_at":%d,"model":%b,' % (
            number.encode(),
            created,
            encode(model),
        )
        self._echo = echo
        self._sequence = _OPENING_EVENTS  # the opening is made after the first events are, and written before them

    def opening(self) -> bytes:
        """The first two events."""
        response = b'"response":' + self._object("in_progress", b"null")
        return b"".join(
            b'event: %b\ndata: {"type":"%b",%b,"sequence_number":%d}\n\n' % (kind, kind, response, place)
            for place, kind in enumerate((b"response.created", b"response.in_progress"))
        )

    def event(self, kind: bytes, members: bytes) -> bytes:
        """The next event."""
        return self.counted(b'event: %b\ndata: {"type":"%b",%b' % (kind, kind, members))

    def counted(self, begun: bytes) -> bytes:
        """The next event, of which all but its number is there."""
        number = self._sequence
        self._sequence = number + 1
        return b'%b,"sequence_number":%d}\n\n' % (begun, number)

    def restart(self) -> None:
        """Forget what was counted: another replica begins anew."""
        self._sequence = _OPENING_EVENTS

    def ending(self, usage: Usage) -> bytes:
        """See AnswerEnvelope. There is no `[DONE]` in this API."""
        kind = b"response.%b" % self.status.encode()
        return self.event(kind, b'"response":' + self._object(self.status, _usage(usage)))

    def body(self, choices: Sequence[bytes], usage: Usage) -> bytes:
        """See AnswerEnvelope. A response has one choice, which is its items."""
        return self._object(self.status, _usage(usage))

    def broken(self, refused: Refused) -> bytes:
        """The error as an event, which clients raise, and the response that failed by it."""
        code = encode(refused.code or refused.type)
        members = b'"code":%b,"message":%b,"param":%b' % (code, encode(refused.sentence), encode(refused.param))
        error = self.event(b"error", b'%b,"error":{"type":"%b",%b}' % (members, refused.type.encode(), members))
        return error + self.event(b"response.failed", b'"response":' + self._object("failed", b"null", refused))

    def _object(self, status: Status, usage: bytes, refused: Refused | None = None) -> bytes:
        error = b"null"
        if refused is not None:
            error = b'{"code":"server_error","message":%b}' % encode(refused.sentence)
        details = b'{"reason":"max_output_tokens"}' if status == "incomplete" else b"null"
        return b'{%b"status":"%b","error":%b,"incomplete_details":%b,%b"output":[%b],"usage":%b}' % (
            self._head,
            status.encode(),
            error,
            details,
            self._echo,
            b",".join(self.items),
            usage,
        )


def _usage(usage: Usage) -> bytes:
    return (
        b'{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d,"cache_write_tokens":0},'
        b'"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":%d}'
    ) % (usage.prompt, usage.cached, usage.output, usage.prompt + usage.output)

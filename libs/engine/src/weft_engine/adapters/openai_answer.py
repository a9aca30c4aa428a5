"""One answer of an OpenAI server on its way to its ticket: text, calls of tools, log probabilities, usage, its end."""

from collections.abc import Callable
from typing import Final

import msgspec
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import Ending, Ticket

from weft_engine.adapters.called_functions import Unreadable
from weft_engine.adapters.openai_errors import ServerError, error_of, meant, words_in
from weft_engine.adapters.openai_events import Chunk, Events, Usage, counted, read_chunk
from weft_engine.adapters.openai_http import MAX_ERROR_BYTES
from weft_engine.adapters.openai_request import Asked
from weft_engine.adapters.openai_scores import scores_of
from weft_engine.adapters.openai_tools import CallWriter

BYTES_A_TOKEN: Final = 16 * 1024
CHARACTERS_A_TOKEN: Final = 64
SPARE: Final = 1024 * 1024
HELD_CHARACTERS: Final = 1000
"""Text before a call of a tool is held back this far; what is longer is an answer in text."""

_FINISH: Final = {
    "stop": pb.FINISH_STOP,
    "eos": pb.FINISH_STOP,
    "eos_token": pb.FINISH_STOP,
    "stop_sequence": pb.FINISH_STOP,
    "tool_calls": pb.FINISH_STOP,
    "function_call": pb.FINISH_STOP,
    "length": pb.FINISH_LENGTH,
}


class Answer:
    """Receives one answer. `over` is called once, after the ticket's end."""

    def __init__(
        self,
        server: str,
        request: pb.Submit,
        asked: Asked,
        ticket: Ticket,
        context_tokens: int,
        over: "Callable[[Answer, ServerError | None], None]",
        hidden: Callable[[str], str],
    ) -> None:
        """`hidden`: takes out of a server's words what nobody may read."""
        budget = min(request.max_tokens or context_tokens, context_tokens)
        self.most_bytes = SPARE + budget * BYTES_A_TOKEN
        self.ticket = ticket
        self.asked = asked
        self.steps = 0
        """chunks so far"""
        self.status = 0
        self.headers: dict[str, str] = {}
        self._most_characters = SPARE // 16 + budget * CHARACTERS_A_TOKEN
        self._characters = 0
        self._server = server
        self._over = over
        self._hidden = hidden
        self._parsed = request.parsed
        self._scored = request.HasField("scores")
        self._scores_came = False
        self._likeliest = request.scores
        self._events: Events | None = None
        self._body = bytearray()
        self._usage: Usage | None = None
        self._made = 0
        """chunks with text, where no usage tells the tokens"""
        self._finish: str | None = None
        self._calls = CallWriter()
        self._held: str | None = "" if asked.calls else None
        """text that a call may follow; None: none is held any more"""
        self._kept: list[str] | None = [] if asked.json_text else None
        self._ended = False

    def begun(self, status: int, headers: dict[str, str]) -> None:
        """See Receiver."""
        self.status, self.headers = status, headers
        if headers.get("content-encoding", "identity") != "identity":
            self.fail(f"the server at {self._server} packs its answers, which it was not asked for")
        elif status == 200 and headers.get("content-type", "").startswith("text/event-stream"):
            self._events = Events()

    def received(self, data: bytes) -> None:
        """See Receiver."""
        if self._ended:
            return
        if self._events is None:
            self._body += data
            if self.status != 200 and len(self._body) > MAX_ERROR_BYTES:
                self._answer_whole()
            return
        try:
            self._take(self._events.feed(data))
        except Unreadable as error:
            self.fail(f"the server at {self._server} can't be understood: {error}")

    def ended(self, fault: str) -> None:
        """See Receiver."""
        if self._ended:
            return
        if fault:
            self.fail(f"the server at {self._server} {fault}", doubt=True)
            return
        if self._events is None:
            self._answer_whole()
            return
        try:
            self._take(self._events.rest())
        except Unreadable as error:
            self.fail(f"the server at {self._server} can't be understood: {error}")
        if self._ended:
            return
        if self._finish is None:
            self.fail(f"the server at {self._server} ended its answer before the end", doubt=True)
        else:
            self._complete()

    def cancel(self) -> None:
        """It is not wanted any more."""
        self._end(self._ending(pb.FINISH_CANCELLED), None)

    def fail(self, sentence: str, *, fault: pb.Fault.ValueType = pb.FAULT_ENGINE, doubt: bool = False) -> None:
        """End it with an error."""
        self._fail(ServerError(fault, sentence, doubt=doubt))

    def _fail(self, error: ServerError) -> None:
        sentence = self._hidden(error.sentence)
        ending = self._ending(pb.FINISH_ERROR)._replace(fault=error.fault, error=sentence, field=error.field)
        self._end(ending, error)

    def _end(self, ending: Ending, error: ServerError | None) -> None:
        if self._ended:
            return
        self._ended = True
        self._body.clear()
        self._events = None
        self.ticket.finish(ending)
        self._over(self, error)

    def _answer_whole(self) -> None:
        """An error, or the answer of a server that does not stream."""
        if self.status != 200:
            self._fail(error_of(self._server, self.status, self._body))
            return
        try:
            self._chunk(read_chunk(self._body))
        except Unreadable as error:
            self.fail(f"the server at {self._server} can't be understood: {error}")
        if not self._ended:
            self._complete()

    def _take(self, events: list[bytes]) -> None:
        for data in events:
            if data == b"[DONE]":
                self._complete()
            elif data:
                self._chunk(read_chunk(data))
            if self._ended:
                return

    def _chunk(self, chunk: Chunk) -> None:
        self.steps += 1
        if chunk.error is not None:
            words = words_in({"error": chunk.error})
            self._fail(meant(self._server, words.status, words))
            return
        if chunk.usage is not None:
            self._usage = chunk.usage
        if not chunk.choices:
            return
        choice = chunk.choices[0]
        said = choice.delta or choice.message
        text = choice.text or "" if said is None else said.content or said.refusal or ""
        thought = None if said is None else said.reasoning_content or said.reasoning
        calls = said.tool_calls if said is not None and self.asked.calls else None
        if text:
            self._made += 1
            scores = scores_of(choice.logprobs, self._likeliest) if self._scored else ()
            if scores:
                self._scores_came = True
            elif self._scored and not self._scores_came:
                self.fail_field(f"the server at {self._server} gives no log probabilities", "scores")
                return
            self._say(text, scores)
        if calls and not self._ended:
            self._call(self._calls.feed(calls))
        if thought and self._parsed and not self._ended:
            if self._within(thought):
                self.ticket.think(thought)
        elif not text and not calls and choice.finish_reason is None and self.steps > 1:
            self.ticket.emit("", ())  # it thinks: a sign of life is all that there is to tell
        if choice.finish_reason is not None:
            self._finish = choice.finish_reason

    def fail_field(self, sentence: str, field: str) -> None:
        """End it by a fault of the request."""
        self._fail(ServerError(pb.FAULT_BAD_REQUEST, sentence, field))

    def _say(self, text: str, scores: "list[pb.TokenScore] | tuple[()]") -> None:
        if not self._within(text):
            return
        if self._kept is not None:
            self._kept.append(text)
        if self._calls.begun:
            return  # what stands after a call is no part of the answer
        if self._held is not None:
            self._held += text
            if len(self._held) <= HELD_CHARACTERS and not self._held.lstrip().startswith("{"):
                return
            text, self._held = self._held, None
        self.ticket.emit(text, (), scores)

    def _call(self, written: str) -> None:
        if not self._within(written):
            return
        if self._held is None:
            self.fail(
                f"the server at {self._server} called a tool after more than {HELD_CHARACTERS} characters of text,"
                " when they were told already"
            )
            return
        self._held = ""
        self.ticket.emit(written, ())

    def _within(self, text: str) -> bool:
        self._characters += len(text)
        if self._characters <= self._most_characters:
            return True
        self.fail(f"the server at {self._server} sent more text than the tokens that it was asked for can hold")
        return False

    def _complete(self) -> None:
        finish = self._finish or "stop"
        found = _FINISH.get(finish)
        if finish == "content_filter":
            self.fail_field(f"the server at {self._server} ended the answer by its content filter", "prompt")
        elif found is None:
            self.fail(f"the server at {self._server} ended the answer: {finish[:40]!r}")
        elif found == pb.FINISH_STOP and self._kept is not None and not _is_json("".join(self._kept)):
            self.fail(f"the server at {self._server} was asked for JSON and answered otherwise")
        else:
            if self._calls.begun:
                if found == pb.FINISH_STOP:
                    self.ticket.emit(self._calls.end(), ())
            elif self._held:
                self.ticket.emit(self._held, ())
            self._end(self._ending(found), None)

    def _ending(self, finish: pb.Finish.ValueType) -> Ending:
        usage = self._usage
        if usage is None:
            return Ending(finish, 0, self._made)
        details = usage.prompt_tokens_details
        prompt = counted(usage.prompt_tokens)
        cached = min(counted(details.cached_tokens), prompt) if details is not None else 0
        return Ending(finish, prompt, counted(usage.completion_tokens), cached)


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True

"""One answer of a function that writes, on the function's own thread: piece by piece, never far ahead of the loop."""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Final, cast

from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import Ending, RequestRefused, Ticket

from weft_engine.functions.question import Cancelled, Question
from weft_engine.stop_strings import StopScanner

AHEAD: Final = 64
"""Pieces that the function may be ahead of the loop; then it waits."""
LONGEST: Final = 16 * 1024
"""Characters that travel as one piece; a longer one is cut."""

log = logging.getLogger("weft.engine")


class WrittenAnswer:
    """Runs the function, hands its pieces to the ticket, and says once when its thread is done."""

    def __init__(self, question: Question, stops: Iterable[str], ticket: Ticket, prompt_tokens: int) -> None:
        self.question = question
        self.ticket = ticket
        self.prompt_tokens = prompt_tokens
        self.made = 0
        """Pieces that the loop took."""
        self._stops: StopScanner[int] = StopScanner(list(stops))
        self._room = threading.Semaphore(AHEAD)
        self._loop = asyncio.get_running_loop()

    @property
    def steps(self) -> int:
        """Signs that the function gets on."""
        return self.made + self.question.signs

    def start(self, write: Callable[[Question], Iterable[str]], done: Callable[["WrittenAnswer"], None]) -> None:
        """Begin. `done` is called on the loop's thread when the function has let go."""
        name = f"functions-{self.ticket.number}"
        threading.Thread(target=self._run, args=(write, done), name=name, daemon=True).start()

    def cancel(self) -> None:
        """Nobody waits any more: the request ends now, its function when it looks."""
        self._end(pb.FINISH_CANCELLED)
        self.question.cancel()

    def _run(self, write: Callable[[Question], Iterable[str]], done: Callable[["WrittenAnswer"], None]) -> None:
        ending: Callable[[], None]
        try:
            self._write(write)
            ending = self._end_whole
        except Cancelled:
            ending = self.cancel
        except RequestRefused as refused:
            ending = self._failing(refused.fault, refused.sentence, refused.field)
        except BaseException as error:
            log.exception("a function failed", extra={"request": self.ticket.number})
            ending = self._failing(pb.FAULT_ENGINE, f"the engine failed: {type(error).__name__}: {error}"[:1000])

        def let_go() -> None:
            ending()
            done(self)

        self._post(let_go)

    def _write(self, write: Callable[[Question], Iterable[str]]) -> None:
        pieces = _pieces(write(self.question))
        try:
            for _ in range(self.question.max_tokens):
                self.question.check()
                piece = next(pieces, None)
                if piece is None:
                    return
                for part in _parts(piece):
                    self._room.acquire()
                    self._post(lambda part=part: self._take(part))
            self._post(lambda: self._end(pb.FINISH_LENGTH))
        finally:
            _close(pieces)

    def _post(self, call: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is gone, and the process with it
            self._loop.call_soon_threadsafe(call)

    def _take(self, piece: str) -> None:
        self._room.release()
        if self.ticket.ending is not None:
            return
        self.made += 1
        text, _ = self._stops.feed((piece, ()))
        if text:
            self.ticket.emit(text, ())
        if self._stops.stopped:
            self.question.cancel()
            self._end(pb.FINISH_STOP)

    def _end_whole(self) -> None:
        self._end(pb.FINISH_STOP)

    def _failing(self, fault: pb.Fault.ValueType, sentence: str, field: str = "") -> Callable[[], None]:
        def fail() -> None:
            self.ticket.finish(
                Ending(pb.FINISH_ERROR, self.prompt_tokens, self.made, fault=fault, error=sentence, field=field)
            )

        return fail

    def _end(self, finish: pb.Finish.ValueType) -> None:
        if self.ticket.ending is not None:
            return
        if not self._stops.stopped:
            text, _ = self._stops.rest()
            if text:
                self.ticket.emit(text, ())
        self.ticket.finish(Ending(finish, self.prompt_tokens, self.made))


def _pieces(answer: object) -> Iterator[object]:
    """What a function answered, piece by piece. Raises TypeError."""
    if isinstance(answer, str):
        return iter((answer,))
    if not isinstance(answer, Iterable):
        raise TypeError(f"the function answered with {type(answer).__name__}, want text or pieces of text")
    return iter(cast("Iterable[object]", answer))


def _parts(piece: object) -> Iterator[str]:
    """A piece as text that can travel. Raises TypeError for what is none."""
    if not isinstance(piece, str):
        raise TypeError(f"the function yielded {type(piece).__name__}, want text")
    text = piece.encode("utf-8", "replace").decode()  # a CLI's bytes may have become half characters
    for at in range(0, len(text), LONGEST):
        yield text[at : at + LONGEST]


def _close(pieces: Iterator[object]) -> None:
    """End a generator, so that its `finally` runs."""
    close = getattr(pieces, "close", None)
    if close is not None:
        with contextlib.suppress(Exception):
            close()

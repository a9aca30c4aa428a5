"""How far a file is that is sent: a bar on a terminal, a line now and then elsewhere."""

import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from weft_client.sending import Sent
from weft_client.units import size

from weft_cli.render import cut, printable

_WINDOW_S: Final = 8.0
_DRAWN_S, _LINE_S = 0.2, 10.0
_WIDTH: Final = 24
_LONGEST: Final = 200
_CLEAR: Final = "\r\x1b[K"


class UploadBar:
    """What is told of one upload. `quiet`: nothing."""

    def __init__(self, *, quiet: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._quiet = quiet
        self._clock = clock
        self._drawn = sys.stdout.isatty() and not quiet
        self._marks: deque[tuple[float, int]] = deque()
        self._last = float("-inf") if self._drawn else clock()
        self._waits = ""

    def told(self, sent: Sent) -> None:
        """It is so far now."""
        now = self._clock()
        if self._marks and sent.there < self._marks[-1][1]:
            self._marks.clear()  # it begins anew
        if not self._marks or now - self._marks[-1][0] >= _DRAWN_S:
            self._marks.append((now, sent.there))
        while len(self._marks) > 2 and now - self._marks[0][0] > _WINDOW_S:
            self._marks.popleft()
        changed = sent.waits != self._waits and sent.waits != ""
        self._waits = sent.waits or self._waits
        if self._quiet or (not changed and now - self._last < (_DRAWN_S if self._drawn else _LINE_S)):
            return
        self._last = now
        line = f"  {sent.waits}" if sent.waits and changed else f"  {in_words(sent, self._rate())}"
        text = cut(printable(line), _LONGEST)
        if not self._drawn:
            print(text, flush=True)
        elif changed:
            print(f"{_CLEAR}{text}", flush=True)
        else:
            print(f"{_CLEAR}{text}", end="", flush=True)

    def clear(self) -> None:
        """Nothing more is told: what comes next begins a line."""
        if self._drawn:
            print(_CLEAR, end="", flush=True)

    def _rate(self) -> float:
        if len(self._marks) < 2:
            return 0.0
        (first, was), (last, now) = self._marks[0], self._marks[-1]
        return (now - was) / (last - first) if last > first else 0.0


def in_words(sent: Sent, rate: float) -> str:
    """A bar with bytes, their rate a second, and how long it still takes."""
    part = sent.there / sent.size if sent.size else 1.0
    full = int(part * _WIDTH)
    said = f"[{'#' * full}{'.' * (_WIDTH - full)}] {int(part * 100)} %  {size(sent.there)} of {size(sent.size)}"
    if rate < 1:
        return said
    return f"{said}, {size(round(rate))}/s, {_span((sent.size - sent.there) / rate)} left"


def _span(seconds: float) -> str:
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    return f"{whole // 60} min" if whole < 7200 else f"{whole // 3600} h {whole % 3600 // 60} min"

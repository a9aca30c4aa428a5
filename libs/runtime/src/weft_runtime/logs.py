"""Logs are events with fields, one a line on standard error; secrets and prompts never enter them."""

import contextlib
import logging
import sys
from typing import Any, Literal, TextIO, cast

import structlog

_TRACEBACKS = structlog.processors.ExceptionRenderer(
    structlog.tracebacks.ExceptionDictTransformer(show_locals=False, max_frames=20)
)
"""Without local variables: they hold secrets and prompts."""
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class _Lossy:
    """A stream whose full disk or gone reader is no failure of whoever writes: the line is lost."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            return self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._stream.flush()


def configure(
    service: str,
    instance: str,
    level: Literal["debug", "info", "warning", "error"] = "info",
    form: Literal["auto", "json", "console"] = "auto",
) -> None:
    """Set logging up for this process, once. Third parties' warnings come in the same form."""
    console = form == "console" or (form == "auto" and sys.stderr.isatty())
    out = cast(TextIO, _Lossy(sys.stderr))
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    renderer: list[Any] = (
        [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback)]
        if console
        else [_TRACEBACKS, structlog.processors.JSONRenderer()]
    )
    structlog.configure(
        processors=[*shared, *renderer],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(out),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(service=service, instance=instance)
    foreign = logging.StreamHandler(out)
    foreign.setFormatter(
        structlog.stdlib.ProcessorFormatter(processors=[*_STDLIB_EXTRAS, *renderer], foreign_pre_chain=shared)
    )
    root = logging.getLogger()
    root.handlers[:] = [foreign]
    root.setLevel(max(_LEVELS[level], logging.WARNING))


_STDLIB_EXTRAS: list[Any] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta]


def get_logger(name: str) -> Any:
    """A logger whose lines bear `part=name`."""
    return structlog.get_logger(part=name)

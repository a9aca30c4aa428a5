"""What the supervisor is told: flags first, then `WEFT_…`. It stays small, so no settings library reads them."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

DEFAULT_STATE = os.path.join("~", ".local", "state", "weft", "worker")
DEFAULT_STOP_S = 10.0
MAX_STOP_S = 600.0
DEFAULT_DRAIN_S = 60.0
MAX_DRAIN_S = 3600.0
USAGE = "usage: python -m weft_worker_agent [--state DIR] [--lifeline FD]"


class BadOption(ValueError):
    """A flag or setting that can't be taken; the message says which, where from, and what would be right."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a supervisor runs.

    `drain_s` bounds the worker's own drain when it is told to stop (0: none), `grace_s` the end of running requests
    after it.
    """

    state: str
    agent: tuple[str, ...]
    """The command of the agent."""
    lifeline: int = -1
    """A pipe that the launcher holds open; -1: none."""
    grace_s: float = DEFAULT_STOP_S
    drain_s: float = 0.0
    join_token: bytes = field(default=b"", repr=False)
    """What each agent is handed; empty: nothing."""


def parse(arguments: Sequence[str], environ: Mapping[str, str], join_token: bytes = b"") -> Options:
    """Read flags and environment. Raises BadOption."""
    given = {"--state": environ.get("WEFT_STATE", ""), "--lifeline": environ.get("WEFT_LIFELINE_FD", "")}
    rest = list(arguments)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if name not in given:
            raise BadOption(f"{name} is no flag of the worker's supervisor; {USAGE}")
        if not equals:
            if not rest:
                raise BadOption(f"{name} needs a value; {USAGE}")
            value = rest.pop(0)
        given[name] = value
    return Options(
        state=os.path.abspath(os.path.expanduser(given["--state"] or DEFAULT_STATE)),
        agent=(sys.executable, "-m", "weft_worker_agent", "--agent"),
        lifeline=_descriptor(given["--lifeline"]),
        grace_s=_seconds("WEFT_STOP_TIMEOUT", environ, DEFAULT_STOP_S, MAX_STOP_S),
        drain_s=_seconds("WEFT_DRAIN_TIMEOUT", environ, DEFAULT_DRAIN_S, MAX_DRAIN_S, none=True),
        join_token=join_token,
    )


def _descriptor(text: str) -> int:
    if not text:
        return -1
    try:
        os.fstat(int(text))
    except (ValueError, OSError):
        raise BadOption(f"--lifeline {text!r} is no open file descriptor of this process") from None
    return int(text)


def _seconds(name: str, environ: Mapping[str, str], default: float, most: float, *, none: bool = False) -> float:
    """`none`: 0 is a number of seconds too."""
    text = environ.get(name, "")
    try:
        value = float(text) if text else default
    except ValueError:
        value = -1.0
    if not (0 < value <= most or (none and value == 0)):
        raise BadOption(f"{name}={text!r}: want seconds {'from' if none else 'above'} 0 and up to {most:g}")
    return value

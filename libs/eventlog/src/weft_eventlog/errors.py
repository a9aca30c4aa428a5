"""What can go wrong at the log, by name."""

import contextlib
from collections.abc import Generator

from nats.errors import Error as NatsError
from nats.js.errors import APIError
from nats.js.errors import Error as JetStreamError
from weft_contracts.commit import Guard

from weft_eventlog.guards import FULL


class Conflict(Exception):
    """A guard lost: somebody else moved an aggregate first. Nothing was appended.

    A refused batch does not name the loser, so `guards` are all of them: reread them all.
    """

    def __init__(self, guards: tuple[Guard, ...]) -> None:
        super().__init__(", ".join(f"{g.aggregate} moved past {g.sequence}" for g in guards))
        self.guards = guards


class LogUnavailable(Exception):
    """No answer within the bound. Whether the commit was taken is not known: append it again with its id."""


class LogFull(Exception):
    """The log refuses new facts: its disk or its limit is full. Nothing was appended."""


class ForeignDuplicate(Exception):
    """Another commit bears this event id. Ids are random, so somebody guessed or copied one."""


@contextlib.contextmanager
def unavailable(what: str) -> Generator[None]:
    """Name every refusal or silence of the server inside the block LogUnavailable: `what` could not be done."""
    try:
        yield
    except (NatsError, JetStreamError) as error:
        raise LogUnavailable(f"{what}: {_told(error)}") from error


def _told(error: Exception) -> str:
    """The server's own words, and what to do where it has no room."""
    if not isinstance(error, APIError) or not error.description:
        return repr(error)
    if error.err_code in FULL:
        return (
            f"the NATS server says {error.description!r}: free some of its disk, or raise `max_file_store` in the"
            " `jetstream` part of its configuration"
        )
    return f"the NATS server says {error.description!r} (code {error.err_code})"

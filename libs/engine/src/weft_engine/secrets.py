"""The values of the secrets that a replica's arguments name, which come to its host by a private way.

They come through a pipe that the host inherits: one JSON object a line, with a secret's name and its value. What was
rotated comes the same way while the host runs. They stand in this process's memory and nowhere else.
"""

import json
import logging
import os
import threading
import time
from collections.abc import Collection
from typing import Any, cast

from weft_contracts.secrets import NAMED

WAIT_S = 30.0
"""So long a host waits for the values that its arguments name; its agent had them before it started the host."""
log = logging.getLogger("weft.engine")
_values: dict[str, str] = {}
_came = threading.Condition()


class SecretMissing(Exception):
    """A value that this host was not given; the message is a sentence that names the secret alone."""


def resolved(name: str) -> str:
    """The value of a secret as it is now, by its name or by the argument that names it (`secret:NAME`).

    Ask at each use and keep no copy: another value may come at any time. Raises SecretMissing.
    """
    name = name.removeprefix(NAMED)
    with _came:
        if name not in _values:
            raise SecretMissing(f"the secret {name} was not given to this replica: name it in engine_args")
        return _values[name]


def give(name: str, value: str) -> None:
    """From now on a secret has this value."""
    with _came:
        _values[name] = value
        _came.notify_all()


def receive(descriptor: int) -> None:
    """Take what comes through a pipe, for as long as it is open, in a thread. What this process starts gets no pipe."""
    os.set_inheritable(descriptor, False)
    threading.Thread(target=_receive, args=(descriptor,), name="secrets", daemon=True).start()


def wait_for(names: Collection[str], within_s: float = WAIT_S) -> None:
    """Until all of these have a value. Raises SecretMissing."""
    until = time.monotonic() + within_s
    with _came:
        while missing := sorted(set(names) - _values.keys()):
            left = until - time.monotonic()
            if left <= 0:
                raise SecretMissing(f"the secret {missing[0]} did not come within {within_s:g} s")
            _came.wait(left)


def _receive(descriptor: int) -> None:
    with os.fdopen(descriptor, "rb") as lines:
        for line in lines:
            try:
                said = cast("dict[str, Any]", json.loads(line))
                name, value = str(said["name"]), str(said["value"])
            except (ValueError, KeyError, TypeError):
                log.warning("a secret can't be read")  # and nothing of it is said
                continue
            give(name, value)
            log.info("secret received", extra={"secret": name})

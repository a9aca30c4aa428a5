"""`weft secrets`: values that models' engine arguments name, as `secret:NAME`, and that nothing shows."""

import getpass
import sys
import time
from pathlib import Path

from weft_client import routes
from weft_client.failure import Exit, Failure
from weft_contracts.secrets import MOST_BYTES, NAMED, is_secret_name

from weft_cli import locate
from weft_cli.outcome import show as show_document
from weft_cli.outcome import tell
from weft_cli.render import age, table


def show(folder: Path | None, url: str | None, *, as_json: bool) -> None:
    """Print all secrets by name, and which models name them."""
    found = list(routes.secrets(locate.gateway(folder, url)))
    if as_json:
        show_document(found)
        return
    now = time.time()
    rows = [(each["name"], age(now - each["set_at"]), ", ".join(each["models"]) or "no model") for each in found]
    table(("secret", "set", "named by"), rows)


def put(folder: Path | None, url: str | None, name: str, *, as_json: bool) -> None:
    """Give it the value that stands in stdin, or that somebody types unseen. Raises Failure with status 2 for none."""
    if not is_secret_name(name):
        raise Failure(f"{name[:64]!r} can't be a secret's name: want 1 to 63 of a-z, A-Z, 0-9, - and _", Exit.USAGE)
    gateway = locate.gateway(folder, url)
    answer = routes.set_secret(gateway, name, _value(name))
    tell(f"{name} is set: engine arguments name it as {NAMED}{name}", answer, as_json=as_json)


def remove(folder: Path | None, url: str | None, name: str, *, as_json: bool) -> None:
    """Forget it."""
    answer = routes.remove_secret(locate.gateway(folder, url), name)
    tell(f"there is no secret {name} any more", answer, as_json=as_json)


def _value(name: str) -> str:
    """What stands in stdin, without the line's end that `echo` and files put behind it. No failure shows any of it."""
    if sys.stdin.isatty():
        value = getpass.getpass(f"value of {name} (not shown): ")
    else:
        read = sys.stdin.buffer.read(MOST_BYTES + 3)
        try:
            value = read.decode().removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError:
            raise Failure("the value on stdin is no text in UTF-8", Exit.USAGE) from None
    if not value:
        raise Failure("there is no value: type it when asked, or hand it in by stdin", Exit.USAGE)
    if len(value.encode()) > MOST_BYTES:
        raise Failure(f"the value has more than {MOST_BYTES} bytes, as many as it may have", Exit.USAGE)
    return value

"""`weft top`: nodes, models, replicas, tokens a second and queues, as the gateway sees them, until q or Ctrl-C."""

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from weft_client import routes
from weft_client.gateway import Gateway, Refused, Unreachable

from weft_cli import locate
from weft_cli.render import on_terminal
from weft_cli.top.keyboard import ended_within, keys
from weft_cli.top.looks import Look, look

if TYPE_CHECKING:
    from rich.console import Console

MOST = 100
"""Rows of a list that are asked for."""
TIMEOUT_S = 5.0
_WIDTH = 80
"""Where no terminal says another."""


def run(folder: Path | None, url: str | None, *, once: bool, interval: float, as_json: bool) -> None:
    """Show it until it is ended; once where nobody can watch. Raises Refused; Unreachable where it is shown once."""
    gateway = locate.gateway(folder, url, timeout_s=TIMEOUT_S)
    if as_json or once or not sys.stdout.isatty() or os.environ.get("TERM") in (None, "", "dumb"):
        first = look(routes.load(gateway, MOST), None)
        time.sleep(interval)  # a speed lies between two looks
        second = look(routes.load(gateway, MOST), first)
        if as_json:
            print(json.dumps(second.as_json(), indent=1))
        else:
            _print(gateway, second)
        return
    _watch(gateway, interval)


def _watch(gateway: Gateway, interval: float) -> None:
    from rich.live import Live

    from weft_cli.top.screen import screen

    console = _console()
    last: Look | None = None
    with keys(), Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            absent: str | None = None
            try:
                last = look(routes.load(gateway, min(MOST, console.height)), last)
            except Unreachable as error:
                absent = str(error)
            except Refused as refused:
                if refused.status < 500:
                    raise  # it would be refused for ever
                absent = str(refused)
            live.update(screen(_title(gateway, last), last, absent, console.width, console.height), refresh=True)
            if ended_within(interval):
                return


def _print(gateway: Gateway, found: Look) -> None:
    from weft_cli.top.screen import screen

    console = _console()
    console.print(screen(_title(gateway, found), found, None, console.width, None))


def _title(gateway: Gateway, found: Look | None) -> str:
    who = f"   {found.load['gateway']['instance']}" if found is not None else ""
    return f"{time.strftime('%H:%M:%S')}   {gateway.url}{who}"


def _console() -> "Console":
    from rich.console import Console

    width = None if sys.stdout.isatty() else _WIDTH
    return Console(color_system="auto" if on_terminal() else None, highlight=False, markup=False, width=width)

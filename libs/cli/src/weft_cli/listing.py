"""A group of commands whose bare call and whose `list` show the same: what there is."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import typer

from weft_cli.admin_app import alone
from weft_cli.options import JsonOption, StateOption, UrlOption


class Listing(Protocol):
    """A module of commands that can show what there is."""

    def show(self, state: Path | None, url: str | None, /, *, as_json: bool) -> None:
        """Print it."""
        ...


def lists(group: typer.Typer, says: str, commands: Callable[[], Listing]) -> None:
    """Give a group both ways to list. `says`: their help; `commands` imports what shows it, once it is asked for."""

    @group.callback(invoke_without_command=True)
    def bare(  # pyright: ignore[reportUnusedFunction] - typer calls it
        ctx: typer.Context, state: StateOption = None, url: UrlOption = None, as_json: JsonOption = False
    ) -> None:
        if alone(ctx):
            commands().show(state, url, as_json=as_json)

    @group.command("list", help=says)
    def named(  # pyright: ignore[reportUnusedFunction] - likewise
        state: StateOption = None, url: UrlOption = None, as_json: JsonOption = False
    ) -> None:
        commands().show(state, url, as_json=as_json)

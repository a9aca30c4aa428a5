"""The commands of `weft engines`, declared. What they do is imported when called."""

from pathlib import Path
from typing import Annotated

import typer

from weft_cli.admin_app import alone
from weft_cli.completing import engines as known_engines
from weft_cli.options import JsonOption, StateOption, UrlOption

engines = typer.Typer(help="List engines; tell the mesh of those that Weft doesn't bring.", rich_markup_mode=None)


@engines.callback(invoke_without_command=True)
def list_engines(
    ctx: typer.Context, state: StateOption = None, url: UrlOption = None, as_json: JsonOption = False
) -> None:
    """List the engines that the mesh knows."""
    if alone(ctx):
        from weft_cli.commands import engines as command

        command.show(state, url, as_json=as_json)


@engines.command()
def add(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Its profile, as `python -m weft_engine.installed ENGINE` prints it.")
    ],
    state: StateOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell the mesh of an engine; what it was told of it before is replaced."""
    from weft_cli.commands import engines as command

    command.add(state, url, file, as_json=as_json)


@engines.command()
def remove(
    engine: Annotated[str, typer.Argument(metavar="ENGINE", help="Its name.", autocompletion=known_engines)],
    state: StateOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let the mesh forget an engine that no model uses."""
    from weft_cli.commands import engines as command

    command.remove(state, url, engine, as_json=as_json)

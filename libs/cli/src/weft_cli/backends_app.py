"""The commands of `weft backends`, declared. What they do is imported when called."""

from pathlib import Path
from typing import Annotated

import typer

from weft_cli.admin_app import alone
from weft_cli.completing import engines as known_engines
from weft_cli.options import JsonOption, StateOption, UrlOption

backends = typer.Typer(help="List installed engines; tell how one is installed.", rich_markup_mode=None)


@backends.callback(invoke_without_command=True)
def list_backends(
    ctx: typer.Context, state: StateOption = None, url: UrlOption = None, as_json: JsonOption = False
) -> None:
    """List by node what is installed and what is being installed."""
    if alone(ctx):
        from weft_cli.commands import backends as command

        command.show(state, url, as_json=as_json)


@backends.command()
def add(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="YAML or JSON: `recipe`, and `profile` of an engine of one's own.")
    ],
    state: StateOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let nodes install an engine by a recipe; what the mesh was told of it before is replaced."""
    from weft_cli.commands import backends as command

    command.add(state, url, file, as_json=as_json)


@backends.command()
def remove(
    engine: Annotated[str, typer.Argument(metavar="ENGINE", help="Its name.", autocompletion=known_engines)],
    state: StateOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take a recipe back: the engine is installed as Weft's own catalogue says, or not at all."""
    from weft_cli.commands import backends as command

    command.remove(state, url, engine, as_json=as_json)

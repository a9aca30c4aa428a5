"""The commands of `weft backends`, declared. What they do is imported when called."""

from pathlib import Path
from typing import Annotated

import typer

from weft_cli.admin_app import alone
from weft_cli.completing import engines as known_engines
from weft_cli.completing import nodes as known_nodes
from weft_cli.options import JsonOption, NodesOption, StateOption, UrlOption

EngineArgument = Annotated[str, typer.Argument(metavar="ENGINE", help="Its name.", autocompletion=known_engines)]
backends = typer.Typer(help="Engines of nodes: list, install, upgrade, remove.", rich_markup_mode=None)


@backends.callback(invoke_without_command=True)
def list_backends(
    ctx: typer.Context, state: StateOption = None, url: UrlOption = None, as_json: JsonOption = False
) -> None:
    """List by node what is installed and what is being installed."""
    if alone(ctx):
        from weft_cli.commands import backends as command

        command.show(state, url, as_json=as_json)


@backends.command()
def install(
    engine: EngineArgument,
    node: NodesOption = None,
    selector: Annotated[
        str | None, typer.Option("--selector", metavar="K=V,…", help="On all nodes with these labels.")
    ] = None,
    state: StateOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Have nodes install an engine before a replica needs it: all nodes, or those named."""
    from weft_cli.commands import node_backends as command

    command.install(state, url, engine, tuple(node or ()), selector, as_json=as_json)


@backends.command()
def uninstall(
    engine: EngineArgument,
    node: Annotated[str, typer.Option("--node", metavar="NODE", help="Where.", autocompletion=known_nodes)],
    version: Annotated[str, typer.Option("--version", metavar="V", help="Of this version alone.")] = "",
    state: StateOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove from a node what it installed of an engine, if nothing runs in it."""
    from weft_cli.commands import node_backends as command

    command.uninstall(state, url, engine, node, version, as_json=as_json)


@backends.command()
def upgrade(
    engine: EngineArgument, state: StateOption = None, url: UrlOption = None, as_json: JsonOption = False
) -> None:
    """Move an engine's replicas to what its recipe installs today, one after the other."""
    from weft_cli.commands import node_backends as command

    command.upgrade(state, url, engine, as_json=as_json)


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
    engine: EngineArgument,
    state: StateOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take a recipe back: the engine is installed as Weft's own catalogue says, or not at all."""
    from weft_cli.commands import backends as command

    command.remove(state, url, engine, as_json=as_json)

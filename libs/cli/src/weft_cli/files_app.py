"""The commands of `weft files`, declared. What they do is imported when called."""

from typing import Annotated

import typer

from weft_cli.admin_app import alone
from weft_cli.completing import models
from weft_cli.options import JsonOption, ModelArgument, NodesOption, StateOption, UrlOption

FilesArgument = Annotated[
    str,
    typer.Argument(metavar="MODEL", help="Its name, or the digest of its files.", autocompletion=models),
]
files = typer.Typer(help="Models' files on nodes: list, fetch ahead, pin, remove.", rich_markup_mode=None)


@files.callback(invoke_without_command=True)
def list_files(
    ctx: typer.Context, state: StateOption = None, url: UrlOption = None, as_json: JsonOption = False
) -> None:
    """List where models' files lie, come, or can't be had."""
    if alone(ctx):
        from weft_cli.commands import files as command

        command.show(state, url, as_json=as_json)


@files.command()
def fetch(
    model: ModelArgument,
    nodes: Annotated[
        int | None,
        typer.Option("--nodes", metavar="N", min=1, help="On so many nodes that lack them.", show_default=False),
    ] = None,
    node: NodesOption = None,
    state: StateOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Have nodes fetch a model's files before a replica needs them, and keep them."""
    from weft_cli.commands import files as command

    command.fetch(state, url, model, nodes, tuple(node or ()), as_json=as_json)


@files.command()
def pin(
    model: FilesArgument,
    node: NodesOption = None,
    state: StateOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Keep files where they lie: on all nodes that have them, or on those named."""
    from weft_cli.commands import files as command

    command.pin(state, url, model, tuple(node or ()), as_json=as_json)


@files.command()
def unpin(
    model: FilesArgument,
    node: NodesOption = None,
    state: StateOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Keep files no longer than they are needed, and fetch none ahead."""
    from weft_cli.commands import files as command

    command.unpin(state, url, model, tuple(node or ()), as_json=as_json)


@files.command()
def remove(
    model: FilesArgument,
    node: NodesOption = None,
    state: StateOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove files from nodes' disks, each once nothing there uses them."""
    from weft_cli.commands import files as command

    command.remove(state, url, model, tuple(node or ()), as_json=as_json)

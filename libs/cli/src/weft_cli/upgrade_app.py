"""The commands of `weft upgrade`, declared. What they do is imported when called."""

import typer

from weft_cli.admin_app import alone
from weft_cli.options import JsonOption, StateOption, UrlOption

upgrade = typer.Typer(help="Where an upgrade of the mesh stands, and its end.", rich_markup_mode=None)


@upgrade.callback(invoke_without_command=True)
def show_upgrade(
    ctx: typer.Context, state: StateOption = None, url: UrlOption = None, as_json: JsonOption = False
) -> None:
    """Say which versions of events may be written, and which workers can't read the newest ones."""
    if alone(ctx):
        from weft_cli.commands import upgrade as command

        command.show(state, url, as_json=as_json)


@upgrade.command()
def finish(state: StateOption = None, url: UrlOption = None, as_json: JsonOption = False) -> None:
    """Let events be written in their newest versions, once every service and worker reads them."""
    from weft_cli.commands import upgrade as command

    command.finish(state, url, as_json=as_json)

"""The commands of `weft secrets`, declared. What they do is imported when called."""

from typing import Annotated

import typer

from weft_cli.completing import secrets as known_secrets
from weft_cli.listing import Listing, lists
from weft_cli.options import JsonOption, StateOption, UrlOption

secrets = typer.Typer(help="Set and remove secrets that models' engine arguments name.", rich_markup_mode=None)
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Its name.", autocompletion=known_secrets)]


def _commands() -> Listing:
    from weft_cli.commands import secrets as command

    return command


lists(secrets, "List secrets by name; their values can't be had.", _commands)


@secrets.command("set")
def set_secret(
    name: NameArgument, state: StateOption = None, url: UrlOption = None, as_json: JsonOption = False
) -> None:
    """Give a secret a value, from stdin or asked for at the terminal; what runs and names it goes on with it."""
    from weft_cli.commands import secrets as command

    command.put(state, url, name, as_json=as_json)


@secrets.command()
def remove(name: NameArgument, state: StateOption = None, url: UrlOption = None, as_json: JsonOption = False) -> None:
    """Forget a secret that no model names."""
    from weft_cli.commands import secrets as command

    command.remove(state, url, name, as_json=as_json)

"""The commands of `weft aliases`, declared. What they do is imported when called."""

from typing import Annotated

import typer

from weft_cli.completing import aliases as known_aliases
from weft_cli.completing import models as known_models
from weft_cli.listing import Listing, lists
from weft_cli.options import JsonOption, StateOption, UrlOption

aliases = typer.Typer(help="Let a name stand for several models; one of them answers.")
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Its name.", autocompletion=known_aliases)]


def _commands() -> Listing:
    from weft_cli.commands import aliases as command

    return command


lists(aliases, "List aliases, their models and how these stand.", _commands)


@aliases.command("set")
def set_alias(
    name: NameArgument,
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL[=WEIGHT]",
            help="Its models, each with its share (1 where none is said).",
            autocompletion=known_models,
        ),
    ],
    in_order: Annotated[
        bool, typer.Option("--in-order", help="The first that can take a request gets it; no shares.")
    ] = False,
    state: StateOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let a name stand for models; what it stood for before is replaced whole.

    80 % here and 20 % elsewhere: weft aliases set chat local=80 cloud=20

    Elsewhere only while here nothing is free: weft aliases set chat local cloud --in-order
    """
    from weft_cli.commands import aliases as command

    command.put(state, url, name, models, in_order=in_order, as_json=as_json)


@aliases.command()
def remove(name: NameArgument, state: StateOption = None, url: UrlOption = None, as_json: JsonOption = False) -> None:
    """Take an alias away; its models stay."""
    from weft_cli.commands import aliases as command

    command.remove(state, url, name, as_json=as_json)

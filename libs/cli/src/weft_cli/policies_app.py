"""The commands of `weft policies`, declared. What they do is imported when called."""

from pathlib import Path
from typing import Annotated

import typer

from weft_cli.completing import policies as known_policies
from weft_cli.listing import Listing, lists
from weft_cli.options import JsonOption, StateOption, UrlOption

policies = typer.Typer(help="By which rules replicas are placed: list, set, choose.", rich_markup_mode=None)
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Its name.", autocompletion=known_policies)]


def _commands() -> Listing:
    from weft_cli.commands import policies as command

    return command


lists(policies, "List placement policies, what they weigh, and who goes by them.", _commands)


@policies.command()
def show(name: NameArgument, state: StateOption = None, url: UrlOption = None, as_json: JsonOption = False) -> None:
    """Print one as `set` reads it."""
    from weft_cli.commands import policies as command

    command.print_one(state, url, name, as_json=as_json)


@policies.command("set")
def set_policy(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="YAML or JSON: `name`, `apart`, `slots`, `weights`.")],
    state: StateOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell the mesh a policy; another one of its name is replaced, and what runs stays where it is."""
    from weft_cli.commands import policies as command

    command.put(state, url, file, as_json=as_json)


@policies.command("default")
def choose(name: NameArgument, state: StateOption = None, url: UrlOption = None, as_json: JsonOption = False) -> None:
    """Place models by it that name no policy, from now on."""
    from weft_cli.commands import policies as command

    command.choose(state, url, name, as_json=as_json)


@policies.command()
def withdraw(name: NameArgument, state: StateOption = None, url: UrlOption = None, as_json: JsonOption = False) -> None:
    """Forget a policy that no model names and that isn't the mesh's own."""
    from weft_cli.commands import policies as command

    command.withdraw(state, url, name, as_json=as_json)

"""The commands of `weft keys`, declared. What they do is imported when called."""

from typing import Annotated

import typer

from weft_cli.admin_app import alone
from weft_cli.completing import keys as known_keys
from weft_cli.completing import models, scopes
from weft_cli.options import JsonOption, StateOption, UrlOption

keys = typer.Typer(help="List, make and revoke API keys.", rich_markup_mode=None)
KeyArgument = Annotated[
    str, typer.Argument(metavar="KEY", help="A key's id, prefix or name.", autocompletion=known_keys)
]


@keys.callback(invoke_without_command=True)
def list_keys(
    ctx: typer.Context, state: StateOption = None, url: UrlOption = None, as_json: JsonOption = False
) -> None:
    """List API keys."""
    if alone(ctx):
        from weft_cli.commands import keys as command

        command.show(state, url, as_json=as_json)


@keys.command()
def create(
    name: Annotated[str, typer.Option(help="Who bears it; kept apart from the log, can be erased.")] = "",
    scope: Annotated[
        list[str] | None,
        typer.Option(help="admin, inference or read; repeatable (default: inference).", autocompletion=scopes),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(metavar="MODEL", help="Only this model, by its name; repeatable.", autocompletion=models),
    ] = None,
    expires: Annotated[str | None, typer.Option(metavar="SPAN", help="90s, 30m, 12h or 7d; default: never.")] = None,
    as_json: JsonOption = False,
    state: StateOption = None,
    url: UrlOption = None,
) -> None:
    """Make a key; its secret is shown this once."""
    from weft_cli.commands import keys as command

    wanted = command.KeyOptions(name, tuple(scope or ("inference",)), tuple(model or ()), expires)
    command.create(state, url, wanted, as_json=as_json)


@keys.command()
def revoke(key: KeyArgument, state: StateOption = None, url: UrlOption = None, as_json: JsonOption = False) -> None:
    """Let nothing new begin with a key; what runs, runs on."""
    from weft_cli.commands import keys as command

    command.revoke(state, url, key, as_json=as_json)


@keys.command()
def forget(key: KeyArgument, state: StateOption = None, url: UrlOption = None, as_json: JsonOption = False) -> None:
    """Erase a key's name; the key stays as it is."""
    from weft_cli.commands import keys as command

    command.forget(state, url, key, as_json=as_json)


@keys.command()
def first(as_json: JsonOption = False) -> None:
    """Make a first admin key where no mesh of `weft up` does: a secret, and what gateways are told of it."""
    from weft_cli.commands import keys as command

    command.first(as_json=as_json)

"""The commands of `weft observers`, declared. What they do is imported when called."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from weft_cli.admin_app import alone
from weft_cli.options import JsonOption, StateOption

observers = typer.Typer(help="Who outside the mesh may listen to its events.", rich_markup_mode=None)
TrustOption = Annotated[
    Path | None,
    typer.Option("--trust", metavar="DIR", envvar="WEFT_TRUST", help="The mesh's keys (default: the state's)."),
]
NatsOption = Annotated[
    str | None, typer.Option("--nats", metavar="URL", envvar="WEFT_NATS_URL", help="NATS (default: the state's).")
]
ObserverArgument = Annotated[str, typer.Argument(metavar="NAME", help="1 to 40 of a-z, 0-9 and -.")]


@observers.callback(invoke_without_command=True)
def list_observers(
    ctx: typer.Context, state: StateOption = None, trust: TrustOption = None, as_json: JsonOption = False
) -> None:
    """List who may listen."""
    if alone(ctx):
        from weft_cli.commands import observers as command

        command.show(state, trust, as_json=as_json)


@observers.command("list")
def find(state: StateOption = None, trust: TrustOption = None, as_json: JsonOption = False) -> None:
    """List who may listen."""
    from weft_cli.commands import observers as command

    command.show(state, trust, as_json=as_json)


@observers.command()
def add(
    name: ObserverArgument,
    since: Annotated[
        Literal["now", "start"], typer.Option("--from", metavar="now|start", help="Where in the log it begins.")
    ] = "now",
    keep: Annotated[
        str, typer.Option(metavar="SPAN", help="For so long its place is kept while it reads nothing: 1h to 365d.")
    ] = "30d",
    expires: Annotated[str | None, typer.Option(metavar="SPAN", help="90s, 30m, 12h, 7d (default: never).")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where its secret goes (default: STATE/observers/NAME.creds).")
    ] = None,
    state: StateOption = None,
    trust: TrustOption = None,
    nats: NatsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a credential, and a place in the log, with which somebody may listen, and do nothing else."""
    from weft_cli.commands import observers as command

    command.add(state, trust, nats, name, since, keep, expires, out, as_json=as_json)


@observers.command()
def remove(
    name: ObserverArgument,
    state: StateOption = None,
    trust: TrustOption = None,
    nats: NatsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Cut it off, and shut it out for good."""
    from weft_cli.commands import observers as command

    command.remove(state, trust, nats, name, as_json=as_json)

"""The commands that start, end and disturb a mesh on this machine, declared. What they do is imported when called."""

from typing import Annotated

import typer

from weft_cli.options import (
    BundleOption,
    JsonOption,
    ListenOption,
    NatsPortOption,
    PartArgument,
    PortOption,
    StateOption,
    TlsCertOption,
    TlsKeyOption,
    WorkersOption,
)


def up(
    state: StateOption = None,
    port: PortOption = None,
    workers: WorkersOption = None,
    listen: ListenOption = None,
    nats_port: NatsPortOption = None,
    tls_cert: TlsCertOption = None,
    tls_key: TlsKeyOption = None,
    bundle: BundleOption = None,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="In the background, once ready.")] = False,
    model: Annotated[bool, typer.Option(help="Deploy the built-in model into a new state.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="With --detach: where it serves, as JSON.")] = False,
) -> None:
    """Start a whole mesh on this machine and serve until Ctrl-C.

    Ctrl-C and SIGTERM end it within 90 s whatever hangs, a second one within 15 s.
    """
    from weft_cli.commands import up as command

    reach = command.Reach(listen, nats_port, tls_cert, tls_key, bundle)
    command.run(state, port=port, workers=workers, detach=detach, deploy=model, reach=reach, as_json=as_json)


def down(state: StateOption = None, as_json: JsonOption = False) -> None:
    """End the mesh of a state, once running requests are done.

    Within 2 minutes whatever hangs: what does not end by then is killed, and named.
    """
    from weft_cli.commands import up as command

    command.down(state, as_json=as_json)


def hold(part: PartArgument, state: StateOption = None, as_json: JsonOption = False) -> None:
    """Leave a process down once it ends, to see what its loss does."""
    from weft_cli.commands import hold as command

    command.hold(state, part, as_json=as_json)


def release(part: PartArgument, state: StateOption = None, as_json: JsonOption = False) -> None:
    """Let a held process be started again."""
    from weft_cli.commands import hold as command

    command.release(state, part, as_json=as_json)

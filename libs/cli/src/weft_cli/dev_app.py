"""`weft dev`, declared: a source tree's own way to run it."""

from typing import Annotated

import typer

from weft_cli.options import PortOption, StateOption, WorkersOption


def dev(
    state: StateOption = None,
    port: PortOption = None,
    workers: WorkersOption = None,
    model: Annotated[bool, typer.Option(help="Deploy the built-in model into a new state.")] = True,
    logs: Annotated[bool, typer.Option(help="Show what all processes say, each line with whose it is.")] = True,
) -> None:
    """Run the mesh from this tree; what changes is started anew."""
    from weft_cli.commands import dev as command

    command.run(state, port=port, workers=workers, deploy=model, logs=logs)

"""`weft worker`, declared. Each option is also a variable and a line of a file: `weft_cli/worker_options.py`."""

from pathlib import Path
from typing import Annotated

import typer

from weft_cli.options import DevicesOption, SimulateGpusOption, VramBudgetOption


def worker(
    join: Annotated[str | None, typer.Option(metavar="URL", help="The gateway of the mesh to join.")] = None,
    token: Annotated[str | None, typer.Option(help="A registration token.")] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", envvar="WEFT_CONFIG", help="TOML with these options; flags, variables go over it."
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="The node's name (default: the host's).")] = None,
    labels: Annotated[str | None, typer.Option(metavar="K=V,…", help="What selectors ask for.")] = None,
    advertise: Annotated[
        str | None,
        typer.Option(metavar="HOST", help="Where this machine is reached (default: as the gateway sees it)."),
    ] = None,
    grpc_port: Annotated[
        str | None, typer.Option(metavar="PORT", help="The first port of engines, one each (default: any free ones).")
    ] = None,
    http_port: Annotated[
        str | None, typer.Option(metavar="PORT", help="Of files and logs (default: any free one, kept).")
    ] = None,
    models_path: Annotated[str | None, typer.Option(metavar="DIR", help="The disk that models lie on.")] = None,
    backends_path: Annotated[
        str | None, typer.Option(metavar="DIR", help="Engines' environments: DIR/llama.cpp/bin/python.")
    ] = None,
    max_replicas_per_model: Annotated[
        str | None, typer.Option(metavar="N", help="Of one model at most (default: no cap).")
    ] = None,
    drain_timeout: Annotated[
        str | None, typer.Option(metavar="SECONDS", help="For its drain when it is told to stop (default: 60).")
    ] = None,
    state: Annotated[str | None, typer.Option(metavar="DIR", help="What the worker keeps.")] = None,
    devices: DevicesOption = None,
    vram_budget: VramBudgetOption = None,
    simulate_gpus: SimulateGpusOption = None,
) -> None:
    """Let this machine work for a mesh."""
    from weft_cli.commands import worker as command

    flags = {
        "join": join,
        "token": token,
        "name": name,
        "labels": labels,
        "advertise": advertise,
        "grpc-port": grpc_port,
        "http-port": http_port,
        "models-path": models_path,
        "backends-path": backends_path,
        "max-replicas-per-model": max_replicas_per_model,
        "drain-timeout": drain_timeout,
        "state": state,
        "devices": devices,
        "vram-budget": vram_budget,
        "simulate-gpus": simulate_gpus,
    }
    command.run(flags, config)

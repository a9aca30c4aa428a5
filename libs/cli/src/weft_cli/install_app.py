"""`weft install`, `weft uninstall` and `weft bundle`, declared. What they do is imported when called."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from weft_client.failure import Exit, Failure

from weft_cli.options import JsonOption

if TYPE_CHECKING:
    from weft_cli.systemd.parts import Part

_PARTS = ("mesh", "worker", "nats")
PartArgument = Annotated[str, typer.Argument(metavar="mesh|worker|nats", help="What the unit runs.")]
SystemdOption = Annotated[bool, typer.Option("--systemd", help="As a unit of systemd: there is no other way yet.")]
UserOption = Annotated[bool, typer.Option("--user", help="Your own manager's; without it the machine's, as root.")]


def install(
    part: PartArgument = "mesh",
    systemd: SystemdOption = False,
    user: UserOption = False,
    state: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where it keeps its own (default: /var/lib/weft, or yours).")
    ] = None,
    listen: Annotated[str | None, typer.Option(metavar="ADDRESS", help="mesh: as of `weft up`.")] = None,
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="mesh: as of `weft up`.")] = None,
    workers: Annotated[int | None, typer.Option(min=0, max=64, help="mesh: as of `weft up`.")] = None,
    nats_port: Annotated[int | None, typer.Option(min=1, max=65535, help="mesh: as of `weft up`.")] = None,
    model: Annotated[bool, typer.Option(help="mesh: as of `weft up`.")] = True,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="worker: its TOML file (default: /etc/weft/worker.toml).")
    ] = None,
    join: Annotated[
        str | None, typer.Option(metavar="URL", help="worker: write that file; the token is in WEFT_JOIN_TOKEN.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="worker: the node's name in that file.")] = None,
    labels: Annotated[str | None, typer.Option(metavar="K=V,…", help="worker: its labels in that file.")] = None,
    folder: Annotated[
        Path | None, typer.Option(metavar="DIR", help="nats: the server's folder, as `weft nats-config` made it.")
    ] = None,
    now: Annotated[bool, typer.Option("--now", help="Start it, and at each boot.")] = False,
    only_print: Annotated[bool, typer.Option("--print", help="Show the unit, and write nothing.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run a mesh, a worker or a log server as a service.

    Made anew it is replaced; a unit of somebody else's, or an edited one, is not touched.
    """
    from weft_cli.commands import install as command
    from weft_cli.systemd.parts import MeshOptions
    from weft_cli.systemd.worker_file import TOKEN, WorkerSaid

    chosen = _checked(part, systemd)
    given: dict[str, set[object]] = {
        "mesh": {listen, port, workers, nats_port, None if model else "--no-model"},
        "worker": {config, join, name, labels},
        "nats": {folder},
    }
    if others := [each for each in _PARTS if each != part and given[each] != {None}]:
        raise Failure(f"options of `{others[0]}` mean nothing to `{part}`: see weft install --help", Exit.USAGE)
    wanted = command.Wanted(
        chosen,
        user,
        state,
        config,
        folder,
        MeshOptions(listen, port, workers, nats_port, model),
        WorkerSaid(join, name, labels, os.environ.get(TOKEN)),
    )
    command.run(wanted, now=now, only_print=only_print, as_json=as_json)


def uninstall(
    part: PartArgument = "mesh",
    systemd: SystemdOption = False,
    user: UserOption = False,
    purge: Annotated[
        bool, typer.Option("--purge", help="Its state and settings, too: keys, log and all; for good.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Stop such a service and take its unit away; its state stays."""
    from weft_cli.commands import install as command

    command.remove(_checked(part, systemd), user=user, purge=purge, as_json=as_json)


def _checked(part: str, systemd: bool) -> "Part":
    if part not in _PARTS:
        raise Failure(f"{part!r} is nothing to install: want one of {', '.join(_PARTS)}", Exit.USAGE)
    if not systemd:
        raise Failure("say by whom it is to be kept running: --systemd", Exit.USAGE)
    return part


def bundle(
    target: Annotated[Path, typer.Argument(metavar="DIR|FILE.tar", help="A new folder, or one file to carry.")],
    model: Annotated[
        list[Path] | None, typer.Option("--model", metavar="FILE", help="A model's file to come along; repeatable.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Gather all that a machine without a network installs.

    For machines of this system, processor and Python: Weft, what it stands on, llama.cpp, and an `install`.
    """
    from weft_cli.commands import bundle as command

    command.run(target, model or (), as_json=as_json)

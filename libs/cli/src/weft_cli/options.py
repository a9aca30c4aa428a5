"""Options that several commands share, and the completion of what they name."""

from pathlib import Path
from typing import Annotated

import typer

from weft_cli.completing import (
    askable,
    engines,
    models,
    nodes,
    policies,
    processes,
    replicas_and_models,
    shells,
    things_with_logs,
)

StateOption = Annotated[
    Path | None,
    typer.Option("--state", metavar="DIR", envvar="WEFT_STATE", help="The mesh's state (default ~/.local/state/weft)."),
]
UrlOption = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", envvar="WEFT_URL", help="A gateway (default: that of the state's mesh)."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON document instead; errors too, on stderr.")]
LinesOption = Annotated[bool, typer.Option("--json", help="JSON instead, one object a line.")]
ModelArgument = Annotated[str, typer.Argument(metavar="MODEL", help="A model's name.", autocompletion=models)]
ModelOption = Annotated[
    str | None,
    typer.Option("--model", "-m", metavar="MODEL", help="Which model; without it you choose.", autocompletion=askable),
]
LogArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="A process, a replica, or a model for its newest replica.", autocompletion=things_with_logs
    ),
]
ReplicaArgument = Annotated[
    str,
    typer.Argument(
        metavar="REPLICA",
        help="A replica's id, a model's name for its newest, or an alias.",
        autocompletion=replicas_and_models,
    ),
]
PartArgument = Annotated[
    str,
    typer.Argument(metavar="PROCESS", help="As `weft status` names it.", autocompletion=processes),
]
EngineOption = Annotated[
    str | None,
    typer.Option(metavar="ENGINE", help="As `weft engines` names it (default: what fits).", autocompletion=engines),
]
PolicyOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="As `weft policies` names it (default: the mesh's own).", autocompletion=policies
    ),
]
ShellArgument = Annotated[str, typer.Argument(metavar="bash|zsh|fish", autocompletion=shells)]
NodeArgument = Annotated[str, typer.Argument(metavar="NODE", help="A node's name or id.", autocompletion=nodes)]
NodesOption = Annotated[
    list[str] | None,
    typer.Option("--node", metavar="NODE", help="There; may be said again.", autocompletion=nodes),
]
DeadlineOption = Annotated[
    str, typer.Option(metavar="SPAN", help="What still runs then is told and ended: 90s, 30m, 12h.")
]
ReasonOption = Annotated[str, typer.Option("--reason", help="Why; it stands in the log.")]
DevicesOption = Annotated[str | None, typer.Option(help="Accelerators to use: all, none, 0, amd:1, !GPU-UUID…")]
VramBudgetOption = Annotated[str | None, typer.Option(help="How much of each accelerator: 80%, 0.8, 12GB, 12GiB.")]
SimulateGpusOption = Annotated[str | None, typer.Option(metavar="SPEC", help="For development, like 2x80GB:nvidia.")]
PortOption = Annotated[int | None, typer.Option(min=1, max=65535, help="The gateway's port (default 8080).")]
WorkersOption = Annotated[
    int | None, typer.Option(min=0, max=64, help="Workers that share this machine (default: as last time, or 1).")
]
ListenOption = Annotated[
    str | None,
    typer.Option(
        "--listen",
        "--host",
        metavar="ADDRESS",
        help="Where others reach it, over TLS; 0.0.0.0: everywhere (default: as last time, or loopback).",
    ),
]
NatsPortOption = Annotated[
    int | None,
    typer.Option(min=1, max=65535, help="Where workers reach the log (default: as last time, or a free one)."),
]
TlsCertOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="What browsers are shown (default: the mesh's own certificate).")
]
BundleOption = Annotated[
    Path | None,
    typer.Option(
        "--bundle",
        metavar="DIR",
        envvar="WEFT_INSTALL_BUNDLE",
        help="What further machines are installed from (default: as this one was).",
    ),
]
TlsKeyOption = Annotated[Path | None, typer.Option(metavar="FILE", help="The key of --tls-cert.")]

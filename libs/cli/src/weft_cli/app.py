"""The commands of `weft`, declared: names, options, help. What they do is imported when they are called."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from weft_client.failure import Exit, Failure

from weft_cli.admin_app import brake, drain, nodes, tokens
from weft_cli.aliases_app import aliases
from weft_cli.apply_app import apply
from weft_cli.backends_app import backends
from weft_cli.command_group import CommandGroup
from weft_cli.engines_app import engines
from weft_cli.files_app import files
from weft_cli.install_app import bundle, install, uninstall
from weft_cli.keys_app import keys
from weft_cli.mesh_app import down, hold, release, up
from weft_cli.models_app import deploy, plan, remove, retry, rollback
from weft_cli.observers_app import observers
from weft_cli.options import (
    JsonOption,
    LinesOption,
    LogArgument,
    ModelArgument,
    ModelOption,
    ReplicaArgument,
    ShellArgument,
    StateOption,
    UrlOption,
)
from weft_cli.policies_app import policies
from weft_cli.secrets_app import secrets
from weft_cli.upgrade_app import upgrade
from weft_cli.worker_app import worker

app = typer.Typer(
    name="weft",
    cls=CommandGroup,
    help="Serve large language models from many machines behind one HTTP front door.",
    epilog="Exit status: 0 done, 1 failed (stderr says why), 2 wrong usage, 3 no mesh runs here, 4 not all is ready.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # its rich help takes 0.2 s to load
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(up)
app.command()(down)
app.command()(hold)
app.command()(release)
app.command()(apply)
app.add_typer(nodes, name="nodes")
app.add_typer(tokens, name="tokens")
app.add_typer(engines, name="engines")
app.add_typer(secrets, name="secrets")
app.add_typer(aliases, name="aliases")
app.add_typer(policies, name="policies")
app.add_typer(backends, name="backends")
app.add_typer(files, name="files")
app.add_typer(brake, name="brake")
app.command()(drain)
app.add_typer(keys, name="keys")
app.add_typer(observers, name="observers")
app.add_typer(upgrade, name="upgrade")
app.command()(worker)
app.command()(install)
app.command()(uninstall)
app.command()(bundle)


@app.command()
def status(state: StateOption = None, url: UrlOption = None, as_json: JsonOption = False) -> None:
    """Show the mesh: its processes, nodes, models and replicas."""
    from weft_cli.commands import status as command

    command.run(state, url, as_json=as_json)


@app.command()
def top(
    once: Annotated[bool, typer.Option("--once", help="Print it once, as where stdout is no terminal.")] = False,
    interval: Annotated[float, typer.Option(min=0.2, max=3600, help="Seconds between two looks.")] = 2.0,
    as_json: JsonOption = False,
    state: StateOption = None,
    url: UrlOption = None,
) -> None:
    """Watch the mesh: requests, tokens a second, busiest nodes."""
    from weft_cli.commands import top as command

    command.run(state, url, once=once, interval=interval, as_json=as_json)


@app.command()
def chat(
    question: Annotated[
        str | None, typer.Argument(help="Ask this once and end; `-`, or a pipe: what stands in stdin.")
    ] = None,
    model: ModelOption = None,
    system: Annotated[str | None, typer.Option(help="A system message.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="At most so many tokens an answer.")] = None,
    temperature: Annotated[float | None, typer.Option(min=0, max=2, help="0: always the likeliest token.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Of one question: the answer as the API gives it.")] = False,
    state: StateOption = None,
    url: UrlOption = None,
) -> None:
    """Talk to a model, or ask it one question."""
    from weft_cli.commands import chat as command

    options = {"max_tokens": max_tokens, "temperature": temperature}
    command.run(state, url, question, model=model, system=system, options=options, as_json=as_json)


@app.command()
def bench(
    model: ModelArgument,
    streams: Annotated[str, typer.Option(metavar="N,N", help="How many answers at once, one level each.")] = "1,8,32",
    tokens: Annotated[int, typer.Option(min=1, max=1_000_000, help="At most so many tokens an answer.")] = 128,
    seconds: Annotated[float, typer.Option(min=1, max=3600, help="For how long, each level.")] = 10.0,
    prompt: Annotated[str | None, typer.Option(help="What is asked (default: a question and a number).")] = None,
    ignore_eos: Annotated[
        bool, typer.Option("--ignore-eos", help="Answers of full length, from servers that know the field.")
    ] = False,
    as_json: JsonOption = False,
    state: StateOption = None,
    url: Annotated[
        str | None,
        typer.Option(
            metavar="URL", envvar="WEFT_URL", help="Any OpenAI-compatible server (default: the state's mesh)."
        ),
    ] = None,
) -> None:
    """Measure a model: tokens a second, time to the first, errors."""
    from weft_cli.commands import bench as command

    plan = command.Plan(model, command.levels(streams), tokens, seconds, prompt, ignore_eos=ignore_eos)
    command.run(state, url, plan, as_json=as_json)


@app.command()
def logs(
    name: LogArgument,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as lines are written, until Ctrl-C.")] = False,
    tail: Annotated[int, typer.Option("--tail", "-n", min=0, max=10_000, help="So many lines from the end.")] = 100,
    node: Annotated[str | None, typer.Option(help="Of a replica on several nodes: which node's, by id.")] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Lines as they are written, at a terminal too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document; with --follow one a line.")] = False,
    state: StateOption = None,
    url: UrlOption = None,
) -> None:
    """Show the log of a process here, or of a replica anywhere."""
    from weft_cli.commands import logs as command

    command.run(state, url, name, follow=follow, tail=tail, node=node, raw=raw, as_json=as_json)


@app.command()
def doctor(state: StateOption = None, url: UrlOption = None, as_json: JsonOption = False) -> None:
    """Check this machine and the mesh, and say what to do."""
    from weft_cli.commands import doctor as command

    command.run(state, url, as_json=as_json)


@app.command()
def completion(shell: ShellArgument) -> None:
    """Print what makes a shell complete `weft`.

    bash, zsh: eval "$(weft completion bash)"; fish: weft completion fish | source
    """
    from weft_cli.commands import completion as command

    command.run(shell)


app.command()(deploy)
app.command()(plan)
app.command()(remove)
app.command()(retry)
app.command()(rollback)


@app.command()
def events(
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as events happen.")] = False,
    start: Annotated[int, typer.Option("--from", min=0, metavar="N", help="Begin after this log position.")] = 0,
    catalogue: Annotated[bool, typer.Option(help="List every kind of event there can be.")] = False,
    asyncapi: Annotated[
        bool, typer.Option("--asyncapi", help="With --catalogue: as an AsyncAPI document, leases and signals too.")
    ] = False,
    as_json: LinesOption = False,
    state: StateOption = None,
    url: UrlOption = None,
) -> None:
    """Show the event log."""
    from weft_cli.commands import events as command

    if asyncapi and not catalogue:
        raise Failure("--asyncapi belongs to --catalogue: weft events --catalogue --asyncapi", Exit.USAGE)
    if asyncapi:
        command.asyncapi()
    elif catalogue:
        command.catalogue(as_json=as_json)
    else:
        command.run(state, url, after=start, follow=follow, as_json=as_json)


@app.command()
def explain(
    replica: ReplicaArgument,
    as_json: JsonOption = False,
    state: StateOption = None,
    url: UrlOption = None,
) -> None:
    """Say why a replica went where it did, node by node."""
    from weft_cli.commands import explain as command

    command.run(state, url, replica, as_json=as_json)


@app.command("nats-config")
def nats_config(
    servers: Annotated[list[str], typer.Argument(metavar="NAME=HOST[:PORT[:ROUTES[:MONITOR]]]…")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="A folder for each server comes here.")] = Path("nats"),
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the configuration of your own NATS servers: 1, 3 or 5."""
    from weft_cli.commands import nats_config as command

    command.run(state, tuple(servers), out, as_json=as_json)


@app.command()
def found(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where they come; what lies there stays the mesh's.")],
    gateway: Annotated[
        list[str] | None, typer.Option(metavar="HOST", help="Where clients and workers reach it; several times.")
    ] = None,
    nats: Annotated[
        list[str] | None, typer.Option(metavar="NAME=HOST", help="A NATS server: 1, 3 or 5. Default: nats=nats.")
    ] = None,
    postgres: Annotated[
        str | None, typer.Option(metavar="HOST[:PORT]", help="Where the database is. Default: postgres.")
    ] = None,
    nodes: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="So many nodes the join token lets in. Default: 10.")
    ] = None,
    monitor: Annotated[
        str | None, typer.Option(metavar="HOST", help="Where NATS tells of itself. Default: loopback alone.")
    ] = None,
    kubernetes: Annotated[
        bool, typer.Option("--kubernetes", help="Print it all as Secrets, for kubectl apply -f -.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Make the keys for a mesh in compose or Kubernetes."""
    from weft_cli.commands import found as command

    said = command.Said(tuple(gateway or ()), tuple(nats or ()), nodes, postgres, monitor)
    command.run(folder, said, kubernetes=kubernetes, as_json=as_json)


if find_spec("weft_devtools") is not None:  # a source tree: its own checks are commands too
    from weft_devtools.app import declare

    from weft_cli.dev_app import dev

    app.command()(dev)
    declare(app)

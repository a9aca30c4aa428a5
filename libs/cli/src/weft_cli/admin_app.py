"""The commands of `weft nodes`, `weft tokens` and `weft brake`, declared. What they do is imported when called."""

from typing import Annotated

import typer
from weft_client.failure import Exit, Failure

from weft_cli.options import DeadlineOption, JsonOption, NodeArgument, ReasonOption, StateOption, UrlOption

nodes = typer.Typer(help="List the machines of the mesh, and say what they may do.", rich_markup_mode=None)
tokens = typer.Typer(help="List, make and revoke what machines join with.", rich_markup_mode=None)
brake = typer.Typer(help="The brake: nothing is replaced while too many are silent.", rich_markup_mode=None)


def alone(ctx: typer.Context) -> bool:
    """Whether the group is called without a command of its own. Options before one would be lost: raises Failure."""
    if ctx.invoked_subcommand is None:
        return True
    given = [name for name in ctx.params if (source := ctx.get_parameter_source(name)) and source.name == "COMMANDLINE"]
    if given:
        option = {"as_json": "json"}.get(given[0], given[0])
        raise Failure(f"--{option} belongs behind `{ctx.invoked_subcommand}`", Exit.USAGE)
    return False


@nodes.callback(invoke_without_command=True)
def list_nodes(
    ctx: typer.Context, state: StateOption = None, url: UrlOption = None, as_json: JsonOption = False
) -> None:
    """List the machines of the mesh."""
    if alone(ctx):
        from weft_cli.commands import nodes as command

        command.run(state, url, as_json=as_json)


@nodes.command("list")
def find(
    status: Annotated[str | None, typer.Option(help="Only in this state: pending, healthy, removed …")] = None,
    name: Annotated[str | None, typer.Option(help="Only the one of this name.")] = None,
    label: Annotated[
        list[str] | None, typer.Option(metavar="KEY[=VALUE]", help="Only with this label; repeatable.")
    ] = None,
    as_json: JsonOption = False,
    state: StateOption = None,
    url: UrlOption = None,
) -> None:
    """List nodes by what they are; removed ones with --status removed."""
    from weft_cli.commands import nodes as command

    command.find(state, url, status, name, tuple(label or ()), as_json=as_json)


@nodes.command()
def get(node: NodeArgument, as_json: JsonOption = False, state: StateOption = None, url: UrlOption = None) -> None:
    """Show one node."""
    from weft_cli.commands import nodes as command

    command.get(state, url, node, as_json=as_json)


@nodes.command()
def approve(node: NodeArgument, state: StateOption = None, url: UrlOption = None, as_json: JsonOption = False) -> None:
    """Let a node work here that asked to join."""
    from weft_cli.commands import node_admin as command

    command.approve(state, url, node, as_json=as_json)


@nodes.command()
def reject(
    node: NodeArgument,
    reason: Annotated[str, typer.Option("--reason", help="Why; the node is told.")],
    state: StateOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Turn a node away that asked to join."""
    from weft_cli.commands import node_admin as command

    command.reject(state, url, node, reason, as_json=as_json)


@nodes.command()
def cordon(
    node: NodeArgument,
    reason: ReasonOption = "",
    state: StateOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Place nothing new on a node; what runs there runs on."""
    from weft_cli.commands import node_admin as command

    command.cordon(state, url, node, reason, as_json=as_json)


@nodes.command()
def uncordon(
    node: NodeArgument,
    reason: ReasonOption = "",
    state: StateOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Lift a cordon."""
    from weft_cli.commands import node_admin as command

    command.uncordon(state, url, node, reason, as_json=as_json)


@nodes.command()
def label(
    node: NodeArgument,
    labels: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE|KEY-", help="Set one, or take it away.")
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="These and no others.")] = False,
    give_back: Annotated[bool, typer.Option("--return", help="Leave all labels to the node itself again.")] = False,
    state: StateOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show or change a node's labels, whatever it says of itself."""
    from weft_cli.commands import node_admin as command

    command.label(state, url, node, tuple(labels or ()), replace=replace, give_back=give_back, as_json=as_json)


@nodes.command("max-replicas")
def max_replicas(
    node: NodeArgument,
    most: Annotated[int | None, typer.Argument(min=0, help="Of one model at once; 0: no cap.")] = None,
    reset: Annotated[bool, typer.Option("--reset", help="As its worker says.")] = False,
    state: StateOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bound how many replicas of one model a node takes."""
    from weft_cli.commands import node_admin as command

    command.cap(state, url, node, "max-replicas-per-model", most, reset=reset, as_json=as_json)


@nodes.command("vram-budget")
def vram_budget(
    node: NodeArgument,
    budget: Annotated[
        str | None, typer.Argument(help="Of each device: 80%, 0.8, 12GB or 12GiB; an empty text: no limit.")
    ] = None,
    reset: Annotated[bool, typer.Option("--reset", help="As its worker says.")] = False,
    state: StateOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bound how much of a node's devices replicas claim."""
    from weft_cli.commands import node_admin as command

    command.cap(state, url, node, "vram-budget", budget, reset=reset, as_json=as_json)


@nodes.command()
def drain(
    node: NodeArgument,
    deadline: DeadlineOption = "60s",
    state: StateOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Empty a node: its replicas go elsewhere, finish, and retire."""
    from weft_cli.commands import draining as command

    command.drain(state, url, node, deadline, as_json=as_json)


@nodes.command()
def resume(node: NodeArgument, state: StateOption = None, url: UrlOption = None, as_json: JsonOption = False) -> None:
    """Lift a drain: the node takes replicas again."""
    from weft_cli.commands import draining as command

    command.resume(state, url, node, as_json=as_json)


@nodes.command()
def models(node: NodeArgument, as_json: JsonOption = False, state: StateOption = None, url: UrlOption = None) -> None:
    """List what a node runs."""
    from weft_cli.commands import node_models as command

    command.run(state, url, node, as_json=as_json)


@nodes.command()
def unload(
    node: NodeArgument,
    model: Annotated[str, typer.Argument(help="Its name or id.")],
    deadline: DeadlineOption = "60s",
    state: StateOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take a model off a node: others serve first, elsewhere, where its minimum asks for them."""
    from weft_cli.commands import node_models as command

    command.unload(state, url, node, model, deadline, as_json=as_json)


@nodes.command()
def remove(
    node: NodeArgument,
    force: Annotated[bool, typer.Option("--force", help="At once: replicas that run there are lost.")] = False,
    deadline: DeadlineOption = "60s",
    reason: ReasonOption = "",
    state: StateOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take a node out for good: it is drained and cut off, and its key can't come back."""
    from weft_cli.commands import node_admin as command

    command.remove(state, url, node, reason, deadline, force=force, as_json=as_json)


@tokens.callback(invoke_without_command=True)
def list_tokens(
    ctx: typer.Context, state: StateOption = None, url: UrlOption = None, as_json: JsonOption = False
) -> None:
    """List what machines join with."""
    if alone(ctx):
        from weft_cli.commands import tokens as command

        command.show(state, url, as_json=as_json)


@tokens.command()
def create(
    name: Annotated[str, typer.Option(help="What people call it.")] = "",
    expires: Annotated[str | None, typer.Option(metavar="SPAN", help="90s, 30m, 12h or 7d; default: never.")] = None,
    auto_approve: Annotated[
        bool, typer.Option("--auto-approve", help="Whoever joins with it is approved at once.")
    ] = False,
    most_waiting: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Nodes of it that wait for approval at once, and come in a minute."),
    ] = None,
    as_json: JsonOption = False,
    state: StateOption = None,
    url: UrlOption = None,
) -> None:
    """Make a registration token; its secret is shown this once."""
    from weft_cli.commands import tokens as command

    command.create(state, url, name, expires, most_waiting, auto_approve=auto_approve, as_json=as_json)


@tokens.command()
def revoke(
    token: Annotated[str, typer.Argument(help="A token's id or name.")],
    state: StateOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let nobody join with a token any more; who joined stays."""
    from weft_cli.commands import tokens as command

    command.revoke(state, url, token, as_json=as_json)


@brake.callback()
def about_brake() -> None:
    """The brake: nothing is replaced while too many nodes are silent at once."""


@brake.command()
def lift(
    reason: ReasonOption = "", state: StateOption = None, url: UrlOption = None, as_json: JsonOption = False
) -> None:
    """Say that who is silent is really gone: what ran there is replaced."""
    from weft_cli.commands import brake as command

    command.lift(state, url, reason, as_json=as_json)

"""The commands about models, declared: deploy, plan, remove, retry, rollback."""

from pathlib import Path
from typing import Annotated

import typer
from weft_client.failure import Exit, Failure

from weft_cli.options import EngineOption, JsonOption, ModelArgument, PolicyOption, StateOption, UrlOption


def deploy(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A hub's repository as `owner/name` or `owner/name:Q4_K_M`, `https://…/m.gguf`, `s3://bucket/key`, a "
            "GGUF file or a folder of safetensors on the workers, a GGUF file of this machine for a mesh elsewhere, "
            "`tiny`, `tiny-embed`, `simulated`, `engine:NAME`, or `openai:URL#MODEL`.",
        ),
    ],
    name: Annotated[str | None, typer.Option(help="What people call it (default: from the source).")] = None,
    engine: EngineOption = None,
    engine_arg: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Handed to the engine; repeatable.")
    ] = None,
    lora: Annotated[
        list[str] | None, typer.Option(metavar="NAME[:SCALE]=PATH", help="A LoRA for all answers; repeatable.")
    ] = None,
    source_secret: Annotated[
        str | None, typer.Option(metavar="NAME", help="The secret that lets workers read the source.")
    ] = None,
    replicas: Annotated[
        str | None,
        typer.Option(metavar="N|all", help="How many copies: --min and --max in one; all: one on each node."),
    ] = None,
    least: Annotated[
        int | None, typer.Option("--min", min=0, help="Copies at least; 0: none until one is asked for.")
    ] = None,
    most: Annotated[
        int | None, typer.Option("--max", min=0, help="Copies at most, when many ask; 0: no upper bound.")
    ] = None,
    context: Annotated[int | None, typer.Option(min=1, help="Tokens of prompt and answer together.")] = None,
    concurrency: Annotated[int | None, typer.Option(min=1, max=1024, help="Requests that a copy runs at once.")] = None,
    policy: PolicyOption = None,
    selector: Annotated[
        str | None, typer.Option(metavar="K=V,!K,…", help="Labels that its nodes must bear; !K: must not.")
    ] = None,
    capability: Annotated[
        list[str] | None,
        typer.Option(metavar="8.9|gfx942", help="What its devices must have: one of these; repeatable."),
    ] = None,
    anti_affinity: Annotated[
        str | None, typer.Option(metavar="NAME", help="It shares no node with models that name the same.")
    ] = None,
    tensor_parallel: Annotated[int | None, typer.Option(min=1, help="Devices of a node that share each layer.")] = None,
    pipeline_parallel: Annotated[int | None, typer.Option(min=1, help="Stages that share the layers.")] = None,
    gpu: Annotated[
        list[str] | None, typer.Option(metavar="NODE:INDEX", help="A device that it may take, from 0; repeatable.")
    ] = None,
    gpus_per_replica: Annotated[int | None, typer.Option(min=1, help="Devices wished for; fewer may do.")] = None,
    prefer_node: Annotated[
        list[str] | None, typer.Option(metavar="NODE", help="Which nodes a group takes first; repeatable.")
    ] = None,
    distributed: Annotated[
        bool | None, typer.Option("--distributed/--no-distributed", help="Whether a copy may span nodes.")
    ] = None,
    no_cpu_offload: Annotated[bool, typer.Option("--no-cpu-offload", help="On accelerators and nowhere else.")] = False,
    max_surge: Annotated[
        int | None, typer.Option(min=0, help="Copies that a rollout may have beyond those that should serve (1).")
    ] = None,
    max_unavailable: Annotated[
        int | None, typer.Option(min=0, help="Copies that may be missing where one more has no room (0).")
    ] = None,
    progress: Annotated[
        float | None,
        typer.Option(min=0, metavar="S", help="Taken back if no more are ready within so many seconds (14400)."),
    ] = None,
    scaling: Annotated[
        str | None,
        typer.Option(metavar="K=V,…|none", help="Figures of its own that its number goes by, such as up_after_s=10."),
    ] = None,
    priority: Annotated[
        int | None,
        typer.Option(min=-1000, max=1000, help="Comes before models of a lower one, and ends for none of them."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say whether and where it would fit.")] = False,
    wait: Annotated[float, typer.Option(min=0, help="Seconds to wait until it answers.")] = 120.0,
    upload: Annotated[bool, typer.Option("--upload", help="Send a file or folder of this machine.")] = False,
    state: StateOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Deploy a model, or a new revision of one."""
    from weft_cli.commands import models as command
    from weft_cli.typed_values import scaling_of

    settings = command.DeployOptions(
        name,
        engine,
        tuple(engine_arg or ()),
        replicas,
        context,
        concurrency,
        tuple(lora or ()),
        source_secret,
        policy,
        least,
        most,
        selector,
        tuple(capability or ()),
        anti_affinity,
        command.layout_of(
            tensor_parallel=tensor_parallel,
            pipeline_parallel=pipeline_parallel,
            gpus=gpu,
            gpus_per_replica=gpus_per_replica,
            preferred_nodes=prefer_node,
            distributed=distributed,
            cpu_offload=False if no_cpu_offload else None,
        ),
        priority,
        max_surge,
        max_unavailable,
        progress,
        None if scaling is None else scaling_of(scaling),
    )
    command.deploy(state, url, source, settings, wait_s=wait, dry_run=dry_run, upload=upload, as_json=as_json)


def plan(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Machines and models, in YAML; with --live models alone.")
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="On the mesh as it is; without FILE its waiting replicas.")
    ] = False,
    policy: Annotated[
        str | None, typer.Option(metavar="POLICY", help="For all of them, in place of their own.")
    ] = None,
    state: StateOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say where models would go on a file's machines or a mesh's."""
    if live:
        from weft_cli.commands import live_plan

        live_plan.run(state, url, file, policy, as_json=as_json)
        return
    if file is None:
        raise Failure("want a FILE of machines and models, or --live for the mesh as it is", Exit.USAGE)
    from weft_cli.commands import plan as command

    command.run(file, policy, as_json=as_json)


def remove(model: ModelArgument, state: StateOption = None, url: UrlOption = None, as_json: JsonOption = False) -> None:
    """Take a model away; its replicas finish what they do."""
    from weft_cli.commands import models as command

    command.remove(state, url, model, as_json=as_json)


def retry(model: ModelArgument, state: StateOption = None, url: UrlOption = None, as_json: JsonOption = False) -> None:
    """Try a model again that was given up as unservable."""
    from weft_cli.commands import models as command

    command.retry(state, url, model, as_json=as_json)


def rollback(
    model: ModelArgument,
    to: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="The revision to serve again (default: the last before that served)."),
    ] = None,
    wait: Annotated[float, typer.Option(min=0, help="Seconds to wait until it answers.")] = 120.0,
    state: StateOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Serve a revision of before again."""
    from weft_cli.commands import models as command

    command.rollback(state, url, model, to, wait_s=wait, as_json=as_json)

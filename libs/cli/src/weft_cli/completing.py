"""What a shell offers at TAB: names from the running mesh, where they are cheap to have, and else nothing."""

from pathlib import Path
from typing import Any

import typer

_TIMEOUT_S = 0.5


def models(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of models."""
    return _beginning(incomplete, _names(ctx, "models", "name"))


def nodes(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of nodes."""
    return _beginning(incomplete, _names(ctx, "nodes", "name"))


def replicas_and_models(ctx: typer.Context, incomplete: str) -> list[str]:
    """Ids of replicas, and names of models, which stand for their newest replica."""
    return _beginning(incomplete, [*_names(ctx, "models", "name"), *_names(ctx, "replicas", "id")])


def things_with_logs(ctx: typer.Context, incomplete: str) -> list[str]:
    """Processes of the state's mesh, models and replicas."""
    return _beginning(incomplete, [*_processes(ctx), *_names(ctx, "models", "name"), *_names(ctx, "replicas", "id")])


def processes(ctx: typer.Context, incomplete: str) -> list[str]:
    """Processes of the state's mesh."""
    return _beginning(incomplete, _processes(ctx))


def engines(incomplete: str) -> list[str]:
    """What `--engine` takes."""
    from weft_cli.commands.models import ENGINES

    return _beginning(incomplete, [*ENGINES])


def shells(incomplete: str) -> list[str]:
    """What `completion` takes."""
    from weft_cli.commands.completion import SCRIPTS

    return _beginning(incomplete, [*SCRIPTS])


def keys(ctx: typer.Context, incomplete: str) -> list[str]:
    """Ids and names of live API keys."""
    from weft_cli import where
    from weft_cli.failure import Failure

    try:
        gateway = where.gateway(_state(ctx), ctx.params.get("url"), timeout_s=_TIMEOUT_S)
        found: list[dict[str, Any]] = gateway.get("/api/keys", state="live", limit=1000)["items"]
        return _beginning(incomplete, [str(each[field]) for each in found for field in ("id", "name") if each[field]])
    except (Failure, KeyError, TypeError):
        return []


def scopes(incomplete: str) -> list[str]:
    """What a key may be good for."""
    from weft_cli.commands.keys import SCOPES

    return _beginning(incomplete, [*SCOPES])


def _names(ctx: typer.Context, kind: str, field: str) -> list[str]:
    """From the gateway's look at the mesh, which it has by heart."""
    from weft_cli import where
    from weft_cli.failure import Failure

    try:
        gateway = where.gateway(_state(ctx), ctx.params.get("url"), timeout_s=_TIMEOUT_S)
        found: list[dict[str, Any]] = gateway.get("/api/status").get(kind, [])
        return [str(each[field]) for each in found]
    except (Failure, AttributeError, KeyError, TypeError):
        return []


def _processes(ctx: typer.Context) -> list[str]:
    from weft_cli import where
    from weft_cli.embedded import run_file

    record = run_file.read(where.state(_state(ctx)))
    return [part.name for part in record.parts] if record is not None else []


def _state(ctx: typer.Context) -> Path | None:
    named = ctx.params.get("state")
    return Path(named) if named else None


def _beginning(incomplete: str, names: list[str]) -> list[str]:
    return sorted({name for name in names if name.startswith(incomplete)})

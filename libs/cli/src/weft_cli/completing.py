"""What a shell offers at TAB: names from the running mesh, where they are cheap to have, and else nothing."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from weft_api import Status

_TIMEOUT_S = 0.5


def models(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of models."""
    return _beginning(incomplete, _names(ctx, _models))


def askable(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of models and aliases."""
    return _beginning(incomplete, _names(ctx, lambda status: [*_models(status), *_aliases(status)]))


def nodes(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of nodes."""
    return _beginning(incomplete, _names(ctx, lambda status: [each["name"] for each in status["nodes"]]))


def replicas_and_models(ctx: typer.Context, incomplete: str) -> list[str]:
    """Ids of replicas, names of models, which stand for their newest replica, and aliases."""
    return _beginning(incomplete, _names(ctx, lambda status: [*_models(status), *_aliases(status), *_replicas(status)]))


def things_with_logs(ctx: typer.Context, incomplete: str) -> list[str]:
    """Processes of the state's mesh, models and replicas."""
    return _beginning(incomplete, [*_processes(ctx), *_names(ctx, _models), *_names(ctx, _replicas)])


def processes(ctx: typer.Context, incomplete: str) -> list[str]:
    """Processes of the state's mesh."""
    return _beginning(incomplete, _processes(ctx))


def engines(ctx: typer.Context, incomplete: str) -> list[str]:
    """Built-in engines, and those that the mesh was told of."""
    from weft_client import routes
    from weft_client.failure import Failure
    from weft_contracts.engines import BUILTIN

    from weft_cli import locate

    names = {*BUILTIN}
    with suppress(Failure, KeyError, TypeError):
        gateway = locate.gateway(_state(ctx), ctx.params.get("url"), timeout_s=_TIMEOUT_S)
        names.update(each["name"] for each in routes.engine_profiles(gateway))
    return _beginning(incomplete, [*names])


def shells(incomplete: str) -> list[str]:
    """What `completion` takes."""
    from weft_cli.commands.completion import SCRIPTS

    return _beginning(incomplete, [*SCRIPTS])


def keys(ctx: typer.Context, incomplete: str) -> list[str]:
    """Ids and names of live API keys."""
    from weft_client import routes
    from weft_client.failure import Failure

    from weft_cli import locate

    try:
        gateway = locate.gateway(_state(ctx), ctx.params.get("url"), timeout_s=_TIMEOUT_S)
        found = list(routes.keys(gateway, "state=live"))
        return _beginning(incomplete, [word for each in found for word in (each["id"], each["name"]) if word])
    except (Failure, KeyError, TypeError):
        return []


def aliases(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of aliases."""
    return _beginning(incomplete, _names(ctx, _aliases))


def secrets(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of secrets."""
    from weft_client import routes
    from weft_client.failure import Failure

    from weft_cli import locate

    try:
        gateway = locate.gateway(_state(ctx), ctx.params.get("url"), timeout_s=_TIMEOUT_S)
        return _beginning(incomplete, [each["name"] for each in routes.secrets(gateway)])
    except (Failure, KeyError, TypeError):
        return []


def policies(ctx: typer.Context, incomplete: str) -> list[str]:
    """Placement policies: those that Weft comes with, and those that the mesh was told."""
    from weft_client import routes
    from weft_client.failure import Failure
    from weft_contracts.policies import BUILTIN_NAMES

    from weft_cli import locate

    names = {*BUILTIN_NAMES}
    with suppress(Failure, KeyError, TypeError):
        gateway = locate.gateway(_state(ctx), ctx.params.get("url"), timeout_s=_TIMEOUT_S)
        names.update(each["name"] for each in routes.policies(gateway))
    return _beginning(incomplete, [*names])


def scopes(incomplete: str) -> list[str]:
    """What a key may be good for."""
    from weft_cli.commands.keys import SCOPES

    return _beginning(incomplete, [*SCOPES])


def _aliases(status: "Status") -> list[str]:
    return [each["name"] for each in status["aliases"]]


def _models(status: "Status") -> list[str]:
    return [each["name"] for each in status["models"]]


def _replicas(status: "Status") -> list[str]:
    return [each["id"] for each in status["replicas"]]


def _names(ctx: typer.Context, of: "Callable[[Status], list[str]]") -> list[str]:
    """From the gateway's look at the mesh, which it has by heart."""
    from weft_client import routes
    from weft_client.failure import Failure

    from weft_cli import locate

    try:
        gateway = locate.gateway(_state(ctx), ctx.params.get("url"), timeout_s=_TIMEOUT_S)
        return of(routes.status(gateway))
    except (Failure, KeyError, TypeError):
        return []


def _processes(ctx: typer.Context) -> list[str]:
    from weft_embedded import run_file

    from weft_cli import locate

    record = run_file.read(locate.state(_state(ctx)))
    return [part.name for part in record.parts] if record is not None else []


def _state(ctx: typer.Context) -> Path | None:
    named = ctx.params.get("state")
    return Path(named) if named else None


def _beginning(incomplete: str, names: list[str]) -> list[str]:
    return sorted({name for name in names if name.startswith(incomplete)})

"""`weft deploy`, `weft remove`, `weft retry`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft_cli import api, where
from weft_cli.commands.progress import watch
from weft_cli.failure import Exit, Failure

ENGINES = ("llama.cpp", "simulated", "vllm")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What `deploy` was told of a model besides its source."""

    name: str | None = None
    engine: str | None = None
    engine_args: tuple[str, ...] = ()
    replicas: int | None = None
    context: int | None = None
    concurrency: int | None = None


def deploy(
    folder: Path | None, url: str | None, source: str, wanted: Wanted, *, wait_s: float, dry_run: bool = False
) -> None:
    """Deploy, and tell how it gets on until it answers or can't. Raises Failure with the reason if it can't."""
    gateway = where.gateway(folder, url)
    name = name_for(source) if wanted.name is None else wanted.name
    if dry_run:
        from weft_cli.commands.trial import try_out

        try_out(gateway, name, spec(source, wanted))
        return
    answer = api.deploy(gateway, name, spec(source, wanted))
    print(f"{name} is accepted as revision {answer.get('revision', '?')}", flush=True)
    if wait_s and wanted.replicas != 0:
        watch(gateway, name, wait_s)


def remove(folder: Path | None, url: str | None, model: str) -> None:
    """Take a model away."""
    api.remove(where.gateway(folder, url), model)
    print(f"{model} is removed; its replicas finish what they do and stop")


def retry(folder: Path | None, url: str | None, model: str) -> None:
    """Lift `unservable`."""
    api.retry(where.gateway(folder, url), model)
    print(f"{model} is tried again")


def spec(source: str, wanted: Wanted) -> dict[str, Any]:
    """The spec that the command line describes. Raises Failure with status 2 for what can't be meant."""
    if wanted.engine is not None and wanted.engine not in ENGINES:
        raise Failure(f"--engine {wanted.engine}: want one of {', '.join(ENGINES)}", Exit.USAGE)
    fields: dict[str, Any] = {}
    if wanted.engine_args:
        fields["engine_args"] = dict(_engine_arg(each) for each in wanted.engine_args)
    if wanted.replicas is not None:
        fields |= {"min_replicas": wanted.replicas, "max_replicas": wanted.replicas or 1}
    if wanted.context is not None:
        fields["context_tokens"] = wanted.context
    if wanted.concurrency is not None:
        fields["concurrency"] = wanted.concurrency
    if source not in (*api.BUILTINS, "simulated"):
        path = Path(source).expanduser()
        if "/" not in source and not path.exists():
            names = ", ".join((*api.BUILTINS, "simulated"))
            raise Failure(f"{source} is neither a built-in model ({names}) nor a file here: give a path", Exit.USAGE)
        # A path means the same to a worker that started elsewhere.
        source = str(path.absolute())
    return api.spec_of(source, wanted.engine, **fields)


def name_for(source: str) -> str:
    """What people call a model whose source is all that is known."""
    return source if source in (*api.BUILTINS, "simulated") else Path(source).name.removesuffix(".gguf")


def _engine_arg(text: str) -> tuple[str, bool | int | float | str]:
    """KEY=VALUE; the value is a JSON number or boolean where it reads as one, else the text itself."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise Failure(f"--engine-arg {text}: want KEY=VALUE", Exit.USAGE)
    try:
        parsed: object = json.loads(value)
    except ValueError:
        parsed = value
    return key, parsed if isinstance(parsed, bool | int | float) else value

"""`weft deploy`, `weft remove`, `weft retry`."""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft_cli import api, where
from weft_cli.client import Gateway
from weft_cli.failure import Exit, Failure

_LOOK_S = 0.2
_COMING = ("added", "placed", "loading", "ready", "degraded")
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


def deploy(folder: Path | None, url: str | None, source: str, wanted: Wanted, *, wait_s: float) -> None:
    """Deploy, and wait until it answers or can't. Raises Failure with the reason if it can't."""
    gateway = where.gateway(folder, url)
    name = wanted.name or name_for(source)
    answer = api.deploy(gateway, name, spec(source, wanted))
    print(f"{name} is accepted as revision {answer.get('revision', '?')}")
    if wait_s and wanted.replicas != 0:
        _await_ready(gateway, name, wait_s)


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
        # A path means the same to a worker that started elsewhere.
        source = str(Path(source).expanduser().absolute())
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


def _await_ready(gateway: Gateway, name: str, wait_s: float) -> None:
    """Until the newest revision answers. Raises Failure if it can't, though an older one may still."""
    deadline = time.monotonic() + wait_s
    while True:
        seen = api.snapshot(gateway)
        model = seen.model(name)
        if model is not None:
            own = [each for each in seen.replicas if each.model == name and each.digest == model.digest]
            ready = sum(each.state == "ready" for each in own)
            if ready and ready >= model.wanted:
                print(f"{name} answers from {ready} replica{'s' if ready > 1 else ''}")
                return
            if model.given_up:
                raise Failure(f"{name} is {model.state}: {model.reason}")
            if model.reason and not any(each.state in _COMING for each in own):
                raise Failure(f"revision {model.revision} of {name} can't be served: {model.reason}")
        if time.monotonic() >= deadline:
            raise Failure(f"{name} is not ready after {wait_s:g} s; the mesh goes on trying: see `weft status`")
        time.sleep(_LOOK_S)

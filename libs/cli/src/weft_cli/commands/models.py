"""`weft deploy`, `weft remove`, `weft retry`."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from weft_client import api
from weft_client.failure import Exit, Failure
from weft_client.gateway import Refused
from weft_client.sources import fileless, local_path, name_for, server_source
from weft_contracts.names import LONGEST_MODEL_NAME

from weft_cli import locate
from weft_cli.commands.progress import watch
from weft_cli.option_names import DEPLOY, naming_options
from weft_cli.outcome import show, tell


@dataclass(frozen=True, slots=True)
class DeployOptions:
    """What `deploy` was told of a model besides its source."""

    name: str | None = None
    engine: str | None = None
    engine_args: tuple[str, ...] = ()
    replicas: int | None = None
    context: int | None = None
    concurrency: int | None = None
    loras: tuple[str, ...] = ()


def deploy(
    folder: Path | None,
    url: str | None,
    source: str,
    wanted: DeployOptions,
    *,
    wait_s: float,
    dry_run: bool = False,
    as_json: bool = False,
) -> None:
    """Deploy, and tell how it gets on until it answers or can't. Raises Failure with the reason if it can't."""
    gateway = locate.gateway(folder, url)
    name = _name(source, wanted, quiet=as_json)
    with naming_options(DEPLOY), _told_of_name(name):
        if dry_run:
            from weft_cli.commands.dry_run import show_dry_run

            show_dry_run(gateway, name, spec(source, wanted), as_json=as_json)
            return
        answer = api.deploy(gateway, name, spec(source, wanted))
    if not as_json:
        print(f"{name} is accepted as revision {answer.get('revision', '?')}", flush=True)
    if wait_s and wanted.replicas != 0:
        watch(gateway, name, wait_s, quiet=as_json)
    if as_json:
        model = api.snapshot(gateway).model(name)
        counts = {} if model is None else {"state": model.state, "ready": model.ready, "wanted": model.wanted}
        show({"name": name, **answer, "revision": int(answer.get("revision", 0)), **counts})


def _name(source: str, wanted: DeployOptions, *, quiet: bool) -> str:
    """As it was typed, or made of the source's; then that is said where it isn't the same."""
    if wanted.name is not None:
        return wanted.name
    name = name_for(source)
    if not quiet and name not in (Path(source).name, Path(source).stem) and not source.endswith(f"#{name}"):
        print(f"{Path(source).name!r} can't be a model's name, so it is called {name}; --name NAME calls it otherwise")
    return name


@contextmanager
def _told_of_name(name: str) -> Generator[None]:
    """Raises Refused that says what a name is made of, where the gateway refused this one."""
    try:
        yield
    except Refused as refused:
        if refused.param != "name":
            raise
        raise Refused(
            refused.status,
            f"--name {name!r}: want a letter or digit, then letters, digits and any of . _ : / @ -,"
            f" {LONGEST_MODEL_NAME} characters in all at most",
            refused.param,
        ) from refused


def remove(folder: Path | None, url: str | None, model: str, *, as_json: bool) -> None:
    """Take a model away."""
    answer = api.remove(locate.gateway(folder, url), model)
    tell(f"{model} is removed; its replicas finish what they do and stop", answer, as_json=as_json)


def retry(folder: Path | None, url: str | None, model: str, *, as_json: bool) -> None:
    """Lift `unservable`."""
    answer = api.retry(locate.gateway(folder, url), model)
    tell(f"{model} is tried again", answer, as_json=as_json)


def spec(source: str, wanted: DeployOptions) -> dict[str, Any]:
    """The spec that the command line describes. Raises Failure with status 2 for what can't be meant."""
    fields: dict[str, Any] = {}
    if wanted.engine_args:
        fields["engine_args"] = dict(_engine_arg(each) for each in wanted.engine_args)
    if wanted.loras:
        fields["adapters"] = [_lora(each) for each in wanted.loras]
    if wanted.replicas is not None:
        fields |= {"min_replicas": wanted.replicas, "max_replicas": wanted.replicas or 1}
    if wanted.context is not None:
        fields["context_tokens"] = wanted.context
    if wanted.concurrency is not None:
        fields["concurrency"] = wanted.concurrency
    if not fileless(source) and server_source(source) is None:
        source = local_path(source)
    return api.spec_of(source, wanted.engine, **fields)


def _engine_arg(text: str) -> tuple[str, object]:
    """KEY=VALUE; the value is a JSON number, boolean, list or object where it reads as one, else the text itself."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise Failure(f"--engine-arg {text}: want KEY=VALUE", Exit.USAGE)
    try:
        parsed: object = json.loads(value)
    except ValueError:
        parsed = value
    return key, cast(object, parsed) if isinstance(parsed, bool | int | float | list | dict) else value


def _lora(text: str) -> dict[str, object]:
    """NAME=PATH or NAME:SCALE=PATH."""
    given, equals, path = text.partition("=")
    name, colon, scale = given.partition(":")
    wrong = Failure(f"--lora {text}: want NAME=PATH or NAME:SCALE=PATH, the scale as a number", Exit.USAGE)
    if not equals or not name or not path:
        raise wrong
    try:
        factor = float(scale) if colon else 1.0
    except ValueError:
        raise wrong from None
    return {"name": name, "path": local_path(path), "scale": factor}

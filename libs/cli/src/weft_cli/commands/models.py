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
from weft_client.remote_sources import remote_source, title_of
from weft_client.sources import adapter_path, fileless, local_path, name_for, plain, server_source
from weft_client.specs import spec_of
from weft_contracts.names import LONGEST_MODEL_NAME
from weft_contracts.secrets import NAMED
from weft_contracts.source_faults import fault_of_secret

from weft_cli import locate
from weft_cli.commands import uploads
from weft_cli.commands.found_source import found_in_words
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
    source_secret: str | None = None


def deploy(
    folder: Path | None,
    url: str | None,
    source: str,
    wanted: DeployOptions,
    *,
    wait_s: float,
    dry_run: bool = False,
    upload: bool = False,
    as_json: bool = False,
) -> None:
    """Deploy, and tell how it gets on until it answers or can't. `upload`: the source is a file of this machine, to be
    sent. Raises Failure with the reason if it can't."""
    gateway = locate.gateway(folder, url)
    path = uploads.sent_path(gateway, source, upload=upload)
    name = _name(source, wanted, quiet=as_json)
    asked = spec(source, wanted)
    model = None if path is None else uploads.looked_at(path, quiet=as_json)
    asked |= {} if model is None else model.spec
    with naming_options(DEPLOY), _told_of_name(name):
        if dry_run:
            from weft_cli.commands.dry_run import show_dry_run

            show_dry_run(gateway, name, asked, as_json=as_json)
            return
        answer = api.deploy(gateway, name, asked)
    if not as_json:
        print(f"{name} is accepted as revision {answer.get('revision', '?')}", flush=True)
        if found := found_in_words(answer):
            print(f"  {found}", flush=True)
    sent = None
    if model is not None and wanted.replicas != 0:  # nobody waits for what none is to run
        sent = uploads.send(gateway, answer, model, quiet=as_json)
    if wait_s and wanted.replicas != 0:
        watch(gateway, name, wait_s, quiet=as_json)
    if as_json:
        seen = api.snapshot(gateway).model(name)
        counts = {} if seen is None else {"state": seen.state, "ready": seen.ready, "wanted": seen.wanted}
        told = {} if sent is None else {"sent": sent}
        show({"name": name, **answer, "revision": int(answer.get("revision", 0)), **counts, **told})


def _name(source: str, wanted: DeployOptions, *, quiet: bool) -> str:
    """As it was typed, or made of the source's; then that is said where it isn't the same."""
    if wanted.name is not None:
        return wanted.name
    source = plain(source)
    name, remote = name_for(source), remote_source(source)
    called = source if remote is None else title_of(remote)
    as_typed = name in (called, Path(called).name, Path(called).stem) or source.endswith(f"#{name}")
    if not quiet and not as_typed:
        print(f"{Path(called).name!r} can't be a model's name, so it is called {name}; --name NAME calls it otherwise")
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
    source = plain(source)
    if not fileless(source) and server_source(source) is None and remote_source(source) is None:
        source = local_path(source)
    if wanted.source_secret is not None:
        source = _with_secret(source, wanted.source_secret)
    return spec_of(source, wanted.engine, **fields)


def _with_secret(source: str, name: str) -> str:
    """A source with its secret, as it may be typed. Raises Failure."""
    if remote_source(source) is None:
        raise Failure(f"--source-secret is for models that workers fetch, and {source} is none", Exit.USAGE)
    if (fault := fault_of_secret(name)) is not None:
        raise Failure(f"--source-secret {fault}", Exit.USAGE)
    return f"{source} {NAMED}{name}"


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
    return {"name": name, "path": adapter_path(path), "scale": factor}

"""`weft deploy`, `weft remove`, `weft retry`, `weft rollback`."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft_client import api, routes
from weft_client.failure import Exit, Failure
from weft_client.gateway import Refused
from weft_client.remote_sources import remote_source, title_of
from weft_client.sources import fileless, local_path, name_for, plain, server_source
from weft_client.specs import spec_of
from weft_contracts.names import LONGEST_MODEL_NAME
from weft_contracts.secrets import NAMED
from weft_contracts.source_faults import fault_of_secret

from weft_cli import locate
from weft_cli.commands import uploads
from weft_cli.commands.found_source import found_in_words
from weft_cli.commands.progress import watch
from weft_cli.option_names import BOUNDS, DEPLOY, naming_options
from weft_cli.outcome import show, tell
from weft_cli.typed_values import engine_arg, lora, selector_of

if TYPE_CHECKING:  # types alone
    from weft_api import Deployed
    from weft_client.gateway import Gateway

_DIGITS = 9
"""Of a number of replicas."""


@dataclass(frozen=True, slots=True)
class DeployOptions:
    """What `deploy` was told of a model besides its source."""

    name: str | None = None
    engine: str | None = None
    engine_args: tuple[str, ...] = ()
    replicas: str | None = None
    """A number, or `all`: one on each node that matches."""
    context: int | None = None
    concurrency: int | None = None
    loras: tuple[str, ...] = ()
    source_secret: str | None = None
    policy: str | None = None
    least: int | None = None
    most: int | None = None
    """0: no upper bound."""
    selector: str | None = None
    capability: tuple[str, ...] = ()
    anti_affinity: str | None = None
    layout: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What is fixed of how a copy lies over devices, in the spec's fields."""
    priority: int | None = None
    max_surge: int | None = None
    max_unavailable: int | None = None
    progress_s: float | None = None
    scaling: Mapping[str, float] | None = None
    """Figures of its own that it is sized by; empty: none any more."""

    @property
    def rules(self) -> dict[str, Any]:
        """What its rollouts may do and what it is sized by, as far as that was said."""
        said = {"max_surge": self.max_surge, "max_unavailable": self.max_unavailable, "progress_s": self.progress_s}
        told = {name: value for name, value in said.items() if value is not None}
        return told if self.scaling is None else {**told, "scaling": dict(self.scaling)}

    @property
    def sleeps(self) -> bool:
        """Whether none is to run until it is asked."""
        return self.replicas == "0" or self.least == 0


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
    with naming_options(_options(wanted)), _told_of_name(name):
        if dry_run:
            from weft_cli.commands.dry_run import show_dry_run

            show_dry_run(gateway, name, asked, as_json=as_json)
            return
        answer = _deployed(gateway, name, asked, wanted)
    if not as_json:
        print(f"{name} is accepted as revision {answer.get('revision', '?')}", flush=True)
        if found := found_in_words(answer):
            print(f"  {found}", flush=True)
    sent = None
    if model is not None and not wanted.sleeps:  # nobody waits for what none is to run
        sent = uploads.send(gateway, answer, model, quiet=as_json)
    if wait_s and not wanted.sleeps:
        watch(gateway, name, wait_s, quiet=as_json)
    if as_json:
        seen = api.snapshot(gateway).model(name)
        counts = {} if seen is None else {"state": seen.state, "ready": seen.ready, "wanted": seen.wanted}
        told = {} if sent is None else {"sent": sent}
        show({"name": name, **answer, "revision": int(answer.get("revision", 0)), **counts, **told})


def _deployed(gateway: "Gateway", name: str, asked: Mapping[str, Any], wanted: DeployOptions) -> "Deployed":
    """Asked for, by the rules of its rollouts and sizes: those first where there is something to roll out. Raises
    Failure for rules that would refuse a model which isn't there yet."""
    rules, there = wanted.rules, False
    if rules:
        there = any(model.name == name for model in api.snapshot(gateway).models)
        if not there and wanted.max_surge == 0 and not wanted.max_unavailable:
            raise Failure("--max-surge 0 goes with --max-unavailable 1 or more: nothing could be replaced", Exit.USAGE)
        if there:
            routes.schedule(gateway, name, rules)
    answer = api.deploy(gateway, name, asked)
    if rules and not there:
        routes.schedule(gateway, name, rules)
    return answer


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


def rollback(folder: Path | None, url: str | None, model: str, to: int | None, *, wait_s: float, as_json: bool) -> None:
    """Serve a revision of before again, and tell how it gets on until it answers or can't."""
    gateway = locate.gateway(folder, url)
    answer = api.roll_back(gateway, model, to)
    said = f"{model} is as in revision {answer['to']} again, which is revision {answer['revision']} now"
    tell(said, answer, as_json=as_json)
    if wait_s:
        watch(gateway, model, wait_s, quiet=as_json)


def spec(source: str, wanted: DeployOptions) -> dict[str, Any]:
    """The spec that the command line describes. Raises Failure with status 2 for what can't be meant."""
    fields: dict[str, Any] = {}
    if wanted.engine_args:
        fields["engine_args"] = dict(engine_arg(each) for each in wanted.engine_args)
    if wanted.loras:
        fields["adapters"] = [lora(each) for each in wanted.loras]
    fields |= _bounds(wanted)
    if wanted.context is not None:
        fields["context_tokens"] = wanted.context
    if wanted.concurrency is not None:
        fields["concurrency"] = wanted.concurrency
    if wanted.policy is not None:
        fields["policy"] = wanted.policy
    if wanted.selector is not None:
        fields["selector"] = selector_of(wanted.selector)
    if wanted.capability:
        fields["capability"] = list(wanted.capability)
    if wanted.anti_affinity is not None:
        fields["anti_affinity"] = wanted.anti_affinity
    if wanted.layout:
        fields["layout"] = dict(wanted.layout)
    if wanted.priority is not None:
        fields["priority"] = wanted.priority
    source = plain(source)
    if not fileless(source) and server_source(source) is None and remote_source(source) is None:
        source = local_path(source)
    if wanted.source_secret is not None:
        source = _with_secret(source, wanted.source_secret)
    return spec_of(source, wanted.engine, **fields)


def layout_of(**told: object) -> dict[str, Any]:
    """What is told of a layout, without what isn't."""
    return {name: value for name, value in told.items() if value is not None and value != []}


def _options(wanted: DeployOptions) -> dict[str, str]:
    """By which option each field was told."""
    apart = wanted.least is not None or wanted.most is not None
    return DEPLOY | BOUNDS if apart else DEPLOY


def _bounds(wanted: DeployOptions) -> dict[str, int | bool]:
    """How many replicas there may be. Raises Failure."""
    if wanted.replicas is not None:
        if wanted.least is not None or wanted.most is not None:
            raise Failure("--replicas N is --min N --max N: give the one or the others", Exit.USAGE)
        if wanted.replicas == "all":
            return {"spread_all": True}
        if not wanted.replicas.isascii() or not wanted.replicas.isdecimal() or len(wanted.replicas) > _DIGITS:
            raise Failure(f"--replicas {wanted.replicas}: want a whole number from 0 on, or all", Exit.USAGE)
        count = int(wanted.replicas)
        return {"min_replicas": count, "max_replicas": count or 1}
    if wanted.least is None and wanted.most is None:
        return {}
    least = 1 if wanted.least is None else wanted.least
    return {"min_replicas": least, "max_replicas": (least or 1) if wanted.most is None else wanted.most}


def _with_secret(source: str, name: str) -> str:
    """A source with its secret, as it may be typed. Raises Failure."""
    if remote_source(source) is None:
        raise Failure(f"--source-secret is for models that workers fetch, and {source} is none", Exit.USAGE)
    if (fault := fault_of_secret(name)) is not None:
        raise Failure(f"--source-secret {fault}", Exit.USAGE)
    return f"{source} {NAMED}{name}"

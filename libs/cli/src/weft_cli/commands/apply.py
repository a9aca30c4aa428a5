"""`weft apply`: a mesh becomes what a file says."""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from weft_client import routes
from weft_client.failure import Exit, Failure
from weft_client.gateway import Gateway
from weft_contracts.yaml_document import BadDocument, document

from weft_cli import locate
from weft_cli.apply.changes import NUMBERS, Change, Mesh, changes
from weft_cli.apply.fleet_file import FleetFault, FleetFile, fleet_file_of
from weft_cli.apply.names import check_names
from weft_cli.apply.wanted import WantedModel, wanted_models
from weft_cli.commands.progress import watch
from weft_cli.outcome import show
from weft_cli.render import printable

_NUMBERS = frozenset({"replicas", "selector"})
_SCHEDULED = _NUMBERS | {"max_surge", "max_unavailable", "progress", "scaling"}
"""What is told by itself, and moves nothing that runs, but for the selector."""


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """How `apply` goes about it."""

    dry_run: bool = False
    yes: bool = False
    prune: bool = False
    wait_s: float = 0.0
    as_json: bool = False


def run(folder: Path | None, url: str | None, file: Path, options: ApplyOptions) -> None:
    """Say what changes, ask, and change it. Raises Failure: with status 2 for a dry run that finds changes, else 1."""
    said = _read(file)
    gateway = locate.gateway(folder, url)
    try:
        wanted = wanted_models(said, gateway)
        mesh = _there(gateway)
        check_names(said, wanted, mesh, prune=options.prune)
    except FleetFault as fault:
        raise _failure(file, fault) from None
    found = changes(said, wanted, mesh, lambda each: _would_be(gateway, each), prune=options.prune)
    todo = [each for each in found if each.how != "same"]
    if not options.as_json:
        for each in found:
            print(printable(each.line), flush=True)
        print(_counted(found))
    if todo and not options.dry_run:
        _agreed(todo, options)
        for each in todo:
            _do(gateway, each, quiet=options.as_json)
    if options.wait_s and not options.dry_run:
        _wait(gateway, wanted, options)
    if options.as_json:
        show({"changes": [each.document for each in found], "applied": bool(todo) and not options.dry_run})
    if todo and options.dry_run:
        raise SystemExit(int(Exit.CHANGES))


def _read(file: Path) -> FleetFile:
    try:
        return fleet_file_of(document(file.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{file} can't be read: {error}") from None
    except (BadDocument, FleetFault) as fault:
        raise _failure(file, fault) from None


def _failure(file: Path, fault: Exception) -> Failure:
    return Failure("\n".join(f"{file}: {line}" for line in str(fault).splitlines()))


def _there(gateway: Gateway) -> Mesh:
    status = routes.status(gateway)
    models = [each for each in status["models"] if each["state"] != "deleted"]
    nodes = {each["id"]: each["name"] for each in status["nodes"]}
    aliases, policies = list(routes.aliases(gateway)), list(routes.policies(gateway))
    return Mesh(models, aliases, policies, nodes, list(routes.schedulings(gateway)))


def _would_be(gateway: Gateway, model: WantedModel) -> int:
    return int(routes.deploy(gateway, model.name, model.spec, dry_run=True)["revision"])


def _counted(found: Sequence[Change]) -> str:
    counts = {how: sum(each.how == how for each in found) for how in ("add", "change", "remove", "same")}
    if len(found) == counts["same"]:
        return "nothing to do"
    return f"{counts['add']} to add, {counts['change']} to change, {counts['remove']} to remove, {counts['same']} as is"


def somebody_is_there() -> bool:
    """Whether there is a terminal."""
    return sys.stdin.isatty()


def _agreed(todo: Sequence[Change], options: ApplyOptions) -> None:
    """Raises Failure unless somebody says yes."""
    if options.yes:
        return
    if options.as_json or not somebody_is_there():
        raise Failure("nobody is here to be asked: say --yes, or --dry-run to look alone")
    goes = sum(each.how == "remove" for each in todo)
    what = f"do it, and remove {goes}" if goes else "do it"
    try:
        answer = input(f"{what}? [y/N] ")
    except EOFError:
        answer = ""
    if answer.strip().lower() not in ("y", "yes"):
        raise Failure("nothing was changed")


def _do(gateway: Gateway, change: Change, *, quiet: bool) -> None:
    """One change. Raises Failure that names it; the same command goes on from there."""
    try:
        _ask(gateway, change)
    except Failure as failure:
        raise Failure(f"{change.kind} {change.name}: {failure}", failure.exit) from None
    if not quiet:
        done = {"add": "added", "change": "changed", "remove": "removed"}
        print(f"{change.kind} {change.name} is {done[change.how]}", flush=True)


def _ask(gateway: Gateway, change: Change) -> None:
    match change.kind, change.how:
        case "policy", "remove":
            routes.withdraw_policy(gateway, change.name)
        case "policy", _:
            routes.set_policy(gateway, change.name, change.body)
        case "default policy", _:
            routes.choose_policy(gateway, change.name)
        case "alias", "remove":
            routes.remove_alias(gateway, change.name)
        case "alias", _:
            routes.set_alias(gateway, change.name, change.body)
        case "model", "remove":
            routes.remove_model(gateway, change.name)
        case "model", "change" if change.fields.keys() <= _SCHEDULED:
            numbers = _numbers(change) if change.fields.keys() & _NUMBERS else {}
            routes.schedule(gateway, change.name, {**numbers, **change.scheduling})
        case "model", "change":
            if change.scheduling:  # the new revision is rolled out by them
                routes.schedule(gateway, change.name, change.scheduling)
            routes.deploy(gateway, change.name, change.body)
        case _:
            routes.deploy(gateway, change.name, change.body)
            if change.scheduling:
                routes.schedule(gateway, change.name, change.scheduling)


def _numbers(change: Change) -> dict[str, object]:
    """The part of a spec that the scheduling takes; the numbers of a model on all nodes are not said."""
    if change.body["spread_all"]:
        return {"spread_all": True, "node_selector": change.body["selector"]}
    said: dict[str, object] = {name: change.body[name] for name in NUMBERS}
    return {"node_selector": said.pop("selector"), **said}


def _wait(gateway: Gateway, wanted: Sequence[WantedModel], options: ApplyOptions) -> None:
    """Until all models of the file answer that are to. Raises Failure for the first that can't, or not in time."""
    until = time.monotonic() + options.wait_s
    for model in wanted:
        if model.runs:
            left, least = max(0.0, until - time.monotonic()), model.spec["min_replicas"]
            watch(gateway, model.name, left, quiet=options.as_json, least=least)

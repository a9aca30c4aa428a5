"""The mesh as the commands show it, made of the admin API's answers (`routes`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weft_client import accelerators, routes
from weft_client.failure import Failure
from weft_client.gateway import Gateway

if TYPE_CHECKING:
    from weft_api import (
        Alias,
        Deployed,
        Model,
        ModelChanged,
        ModelRetried,
        ModelRolledBack,
        Node,
        Replica,
        ReplicaProgress,
        WantedFiles,
    )


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model: how many replicas there should be, how many answer."""

    name: str
    id: str
    revision: int
    digest: str
    """What its newest revision's replicas have in common."""
    engine: str
    state: str
    wanted: int
    ready: int
    reason: str
    serves: int | None = None
    """The revision that is kept until the newest was ready as a whole; None where none ever answered."""
    failing: str = ""
    """Why the newest revision can't be served while another one is kept."""
    source: str = ""
    """Where it is from, in one line (`source_keys.source_key`)."""
    no_tokenizer: str = ""
    """Why the gateway that answers makes no prompts of it though it should."""
    least: int = 1
    """How many replicas there are to be at least."""
    most: int | None = 1
    """And at most; None: no bound."""
    all_nodes: bool = False
    """Whether there is to be one on each node that matches, and the two numbers say nothing."""
    sized: str = ""
    """Why demand changed how many there should be, the last time; empty: it never did."""

    @property
    def given_up(self) -> bool:
        """It can't be served until somebody changes something."""
        return self.state in ("unservable", "unplaceable")


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node. None is unknown."""

    name: str
    id: str
    state: str
    cpus: float | None
    memory: int | None
    devices: str
    """Its accelerators, or its processor where it has none."""
    engines: str
    reason: str = ""
    """Why it was turned away or cut off."""


@dataclass(frozen=True, slots=True)
class AliasRow:
    """A model that an alias stands for."""

    name: str
    model: str
    share: str
    """Of the requests, in per cent; or its place in the order."""
    state: str
    ready: int
    wanted: int


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """A device that a replica claims, and the bytes that it claims and holds there; None: not known."""

    node: str
    device: str
    claimed: int
    used: int | None


@dataclass(frozen=True, slots=True)
class ReplicaRow:
    """A replica and where it runs."""

    id: str
    model: str
    revision: int
    digest: str
    state: str
    node: str
    engine: str
    reason: str
    progress: str = ""
    """What it waits for: an install or a load, and how far that is."""
    devices: tuple[DeviceUse, ...] = ()


@dataclass(frozen=True, slots=True)
class WantedFilesRow:
    """Files that a node is to have ahead of need and lacks."""

    model: str
    node: str
    state: str
    about: str
    """How far they are, why they wait, or why they can't be had."""
    files: str
    """Their digest."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The mesh in one look."""

    nodes: tuple[NodeRow, ...]
    models: tuple[ModelRow, ...]
    replicas: tuple[ReplicaRow, ...]
    problems: tuple[str, ...]
    position: int
    """Of the log, as far as the gateway has folded it."""
    log_full: str | None = None
    """Why the log takes nothing more, where it has no room."""
    aliases: tuple[AliasRow, ...] = ()
    files_ahead: tuple[WantedFilesRow, ...] = ()

    def model(self, name: str) -> ModelRow | None:
        return next((each for each in self.models if each.name == name), None)


def snapshot(gateway: Gateway) -> Snapshot:
    """What the gateway knows by heart: it answers without Postgres and NATS."""
    answer = routes.status(gateway)
    try:
        progress = answer.get("progress", {})  # an older gateway's answer lacks it
        lacks = answer.get("no_tokenizer", {})
        names = {node["id"]: _Names(node) for node in answer["nodes"]}
        return Snapshot(
            nodes=tuple(node_row(each) for each in answer["nodes"]),
            models=tuple(_model(each, lacks.get(each["id"], "")) for each in answer["models"]),
            replicas=tuple(_replica(each, progress.get(each["id"]), names) for each in answer["replicas"]),
            problems=tuple(answer["mesh"]["problems"]),
            position=answer["log"]["position"],
            log_full=answer["log"].get("full"),
            # an older gateway's answer lacks them
            aliases=tuple(row for each in answer.get("aliases", ()) for row in alias_rows(each)),
            files_ahead=tuple(_wanted_files(each) for each in answer.get("files_ahead", ())),
        )
    except (KeyError, TypeError, ValueError) as e:
        raise Failure(f"{gateway.url} answers in a shape that this weft doesn't know ({e!r}): another version?") from e


def deploy(gateway: Gateway, name: str, spec: Mapping[str, Any], *, idempotency_key: str | None = None) -> "Deployed":
    """Ask for a model, or for a new revision of the one that bears this name; what arose."""
    return routes.deploy(gateway, name, spec, idempotency_key=idempotency_key)


def dry_run(gateway: Gateway, name: str, spec: Mapping[str, Any]) -> "Deployed":
    """Have the nodes asked what they hold for a spec; the log then holds their answers. Nothing else changes."""
    return routes.deploy(gateway, name, spec, dry_run=True)


def remove(gateway: Gateway, name: str) -> "ModelChanged":
    """Take a model away; what the gateway answers."""
    return routes.remove_model(gateway, name)


def retry(gateway: Gateway, name: str) -> "ModelRetried":
    """Lift `unservable` from a model; what the gateway answers."""
    return routes.retry_model(gateway, name)


def roll_back(gateway: Gateway, name: str, to: int | None) -> "ModelRolledBack":
    """Serve a revision of before again; what the gateway answers."""
    return routes.roll_back_model(gateway, name, to)


def nodes(gateway: Gateway, query: str) -> tuple[NodeRow, ...]:
    """All nodes that fit a query string."""
    return tuple(map(node_row, routes.nodes(gateway, query)))


def _wanted_files(each: "WantedFiles") -> WantedFilesRow:
    return WantedFilesRow(each["name"], each["node_name"], each["state"], each["about"], each["files"])


def _model(each: "Model", no_tokenizer: str) -> ModelRow:
    failing, size, spec = each.get("failing"), each.get("size"), each["spec"]  # an older gateway's answer lacks them
    return ModelRow(
        name=each["name"],
        id=each["id"],
        revision=each["revision"],
        digest=each["digest"],
        engine=each["spec"]["engine"],
        state=each["state"],
        wanted=each["wanted"],
        ready=each["ready"],
        reason=each["reason"] or "",
        serves=each.get("serves"),
        failing=failing["reason"] if failing else "",
        source=each.get("source", ""),  # an older gateway's answer lacks it
        no_tokenizer=no_tokenizer,
        least=spec.get("min_replicas", 1),
        most=spec.get("max_replicas", 1) or None,
        all_nodes=spec.get("spread_all", False),
        sized=f"{size['replicas']} instead of {size['was']}: {size['why']}" if size else "",
    )


def alias_rows(each: "Alias") -> list[AliasRow]:
    """A row for each model of an alias."""
    total = sum(target["weight"] for target in each["targets"])
    return [
        AliasRow(
            name=each["name"],
            model=target["model"],
            share=share_of(each["rule"], target["weight"], total, place),
            state=target["state"],
            ready=target["ready"],
            wanted=target["wanted"],
        )
        for place, target in enumerate(each["targets"], 1)
    ]


def share_of(rule: str, weight: int, total: int, place: int) -> str:
    """What a model gets of an alias's requests: a share in per cent, or its place in the order."""
    return f"{place}." if rule == "order" else f"{100 * weight / total:.3g} %"


def node_row(each: "Node") -> NodeRow:
    """A node as the API shows it."""
    hardware = each["hardware"]
    return NodeRow(
        name=each["name"],
        id=each["id"],
        state=each["state"],
        cpus=hardware["cpus"] if hardware else None,
        memory=hardware["memory"] if hardware else None,
        devices=(accelerators.in_words(hardware) or accelerators.processor(hardware)) if hardware else "",
        engines=", ".join(backend["engine"] for backend in each["backends"]),
        reason=each.get("reason") or "",
    )


def _replica(each: "Replica", progress: "ReplicaProgress | None", names: "Mapping[str, _Names]") -> ReplicaRow:
    return ReplicaRow(
        id=each["id"],
        model=each["model_name"],
        revision=each["revision"],
        digest=each["digest"],
        state=each["state"],
        node=each["node_name"] or "",
        engine=" ".join(filter(None, (each["engine"], each["engine_version"]))),
        reason=each["reason"] or "",
        progress=progress["about"] if progress is not None else "",
        devices=_uses(each, progress, names),
    )


class _Names:
    """What a node and its devices are called."""

    def __init__(self, node: "Node") -> None:
        self.node = node["name"]
        self._devices = {each["index"]: each["name"] for each in (node["hardware"] or {}).get("devices", [])}

    def device(self, index: int) -> str:
        name = self._devices.get(index)
        return f"{index} ({name})" if name else str(index)


def _uses(each: "Replica", progress: "ReplicaProgress | None", names: Mapping[str, _Names]) -> tuple[DeviceUse, ...]:
    """What it claims, with what it holds as far as a node said it."""
    said = progress["devices"] if progress is not None else []
    used = {(use["node"], use["index"]): use["used"] for use in said}
    return tuple(
        DeviceUse(
            names[member["node"]].node if member["node"] in names else member["node"],
            names[member["node"]].device(device["index"]) if member["node"] in names else str(device["index"]),
            device["bytes"],
            used.get((member["node"], device["index"])),
        )
        for member in each.get("members", [])
        for device in member["devices"]
    )

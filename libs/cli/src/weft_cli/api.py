"""The gateway's admin API as the commands use it: paths and shapes stand here and nowhere else."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from weft_cli import accelerators
from weft_cli.client import Gateway, segment
from weft_cli.failure import Failure

BUILTINS = ("tiny", "tiny-embed")
"""Models that ship with the project."""


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


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The mesh in one look."""

    nodes: tuple[NodeRow, ...]
    models: tuple[ModelRow, ...]
    replicas: tuple[ReplicaRow, ...]
    problems: tuple[str, ...]
    position: int
    """Of the log, as far as the gateway has folded it."""

    def model(self, name: str) -> ModelRow | None:
        return next((each for each in self.models if each.name == name), None)


def snapshot(gateway: Gateway) -> Snapshot:
    """What the gateway knows by heart: it answers without Postgres and NATS."""
    answer = gateway.get("/api/status")
    try:
        return Snapshot(
            nodes=tuple(node_row(each) for each in answer["nodes"]),
            models=tuple(_model(each) for each in answer["models"]),
            replicas=tuple(_replica(each) for each in answer["replicas"]),
            problems=tuple(answer["mesh"]["problems"]),
            position=int(answer["log"]["position"]),
        )
    except (KeyError, TypeError, ValueError) as e:
        raise Failure(f"{gateway.url} answers in a shape that this weft doesn't know ({e!r}): another version?") from e


def spec_of(source: str, engine: str | None = None, **fields: Any) -> dict[str, Any]:
    """A model's spec from what people type: a built-in model, `simulated`, or the path of a GGUF file or a folder."""
    if source in BUILTINS:
        where: dict[str, str] = {"kind": "builtin", "name": source}
        engine = engine or "llama.cpp"
    elif source == "simulated":
        where = {"kind": "simulated"}
        engine = engine or "simulated"
    else:
        where = {"kind": "path", "path": source}
        engine = engine or ("vllm" if Path(source).is_dir() else "llama.cpp")
    return {"source": where, "engine": engine, **fields}


def deploy(
    gateway: Gateway, name: str, spec: Mapping[str, Any], *, idempotency_key: str | None = None
) -> dict[str, Any]:
    """Ask for a model, or for a new revision of the one that bears this name; what arose."""
    body = {"name": name, "spec": spec}
    return cast("dict[str, Any]", gateway.post("/api/models", body, idempotency_key=idempotency_key))


def try_out(gateway: Gateway, name: str, spec: Mapping[str, Any]) -> None:
    """Have the nodes asked what they hold for a spec; the log then holds their answers. Nothing else changes."""
    gateway.post("/api/models?dry_run=true", {"name": name, "spec": spec})


def remove(gateway: Gateway, name: str) -> None:
    """Take a model away."""
    gateway.delete(f"/api/models/{segment(name)}")


def retry(gateway: Gateway, name: str) -> None:
    """Lift `unservable` from a model."""
    gateway.post(f"/api/models/{segment(name)}/retry", {})


def nodes(gateway: Gateway, question: str) -> tuple[NodeRow, ...]:
    """All nodes that fit a query string, page by page."""
    found: list[NodeRow] = []
    after = ""
    while True:
        parts = [question, "limit=1000", f"after={segment(after)}" if after else ""]
        page = gateway.get(f"/api/nodes?{'&'.join(filter(None, parts))}")
        found += [node_row(each) for each in page["items"]]
        if page["next"] is None:
            return tuple(found)
        after = str(page["next"])


def _model(each: Mapping[str, Any]) -> ModelRow:
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
    )


def node_row(each: Mapping[str, Any]) -> NodeRow:
    """A node as the API shows it."""
    hardware = cast("Mapping[str, Any]", each["hardware"] or {})
    engines = cast("list[Mapping[str, Any]]", each["backends"])
    return NodeRow(
        name=each["name"],
        id=each["id"],
        state=each["state"],
        cpus=hardware.get("cpus"),
        memory=hardware.get("memory"),
        devices=accelerators.in_words(hardware) or accelerators.processor(hardware),
        engines=", ".join(str(engine["engine"]) for engine in engines),
    )


def _replica(each: Mapping[str, Any]) -> ReplicaRow:
    return ReplicaRow(
        id=each["id"],
        model=each["model_name"],
        revision=each["revision"],
        digest=each["digest"],
        state=each["state"],
        node=each["node_name"] or "",
        engine=" ".join(filter(None, (each["engine"], each["engine_version"]))),
        reason=each["reason"] or "",
    )

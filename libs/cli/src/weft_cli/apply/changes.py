"""What lies between a mesh and a file: one change for each thing that either names."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

from weft_contracts.facts.rollout import RolloutRules
from weft_contracts.facts.values import ModelSpec
from weft_contracts.policies import DEFAULT_NAME, PlacementPolicy
from weft_contracts.source_keys import source_key

from weft_cli.apply.fleet_file import FleetFile
from weft_cli.apply.wanted import WantedModel

if TYPE_CHECKING:  # types alone
    from weft_api import Alias, Model, Policy, Scheduling

How = Literal["add", "change", "same", "remove"]
SIGNS: Mapping[How, str] = {"add": "+", "change": "~", "same": "=", "remove": "-"}
NUMBERS = ("min_replicas", "max_replicas", "spread_all", "selector")
"""What changes without a look at the model's files, and moves nothing that runs."""
_COMMIT = re.compile(r"[0-9a-f]{40}")
_WORDS = {
    "context_tokens": "context",
    "adapters": "loras",
    "progress_s": "progress",
}
_COMPARED = (
    *("engine", "context_tokens", "concurrency", "engine_args", "adapters", "policy", "strategy", "selector", "layout"),
    *("capability", "anti_affinity"),
    *("priority", "min_replicas", "max_replicas", "spread_all"),
)

_BEFORE: Mapping[str, Any] = {"spread_all": False, "capability": [], "anti_affinity": "", "priority": 0}
"""What a gateway of before there was such a field would say."""
UNSAID: Mapping[str, Any] = {**RolloutRules().model_dump(), "scaling": {}}
"""Likewise of how a model is rolled out and sized, where nobody said anything."""


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of one thing. `fields`: of what changes, what it was and what it is to be."""

    kind: Literal["model", "alias", "policy", "default policy"]
    name: str
    how: How
    fields: dict[str, tuple[Any, Any]] = field(default_factory=dict[str, tuple[Any, Any]])
    note: str = ""
    body: Any = None
    """What is asked of the gateway."""
    scheduling: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """And beside a model's spec: what is to be other of how it is rolled out and sized."""

    @property
    def line(self) -> str:
        """As people read it."""
        if self.kind == "default policy":
            return f"{SIGNS[self.how]} {self.kind}: {self.note or self.name}"
        said = ", ".join(f"{name} {_text(was)} → {_text(will)}" for name, (was, will) in self.fields.items())
        told = said or self.note
        return f"{SIGNS[self.how]} {self.kind} {self.name}{f': {told}' if told else ''}"

    @property
    def document(self) -> dict[str, Any]:
        """As programs read it."""
        fields = {name: {"is": was, "wanted": will} for name, (was, will) in self.fields.items()}
        return {"kind": self.kind, "name": self.name, "change": self.how, "fields": fields}


@dataclass(frozen=True, slots=True)
class Mesh:
    """What there is."""

    models: Sequence["Model"]
    aliases: Sequence["Alias"]
    policies: Sequence["Policy"]
    nodes: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names by id."""
    schedulings: Sequence["Scheduling"] = ()


Tried = Callable[[WantedModel], int]
"""Which revision a deploy of it would be: the mesh says so, where only it can tell."""


def changes(file: FleetFile, wanted: Sequence[WantedModel], mesh: Mesh, tried: Tried, *, prune: bool) -> list[Change]:
    """What it takes, in the order in which it is done: what others name comes before them, and goes after them."""
    found = [
        *_policy_changes(file.told, mesh),
        *_default(file, mesh),
        *_model_changes(wanted, mesh, tried),
        *_alias_changes(file, mesh),
    ]
    return [*found, *_pruned(file, wanted, mesh)] if prune else found


def _policy_changes(told: Sequence[PlacementPolicy], mesh: Mesh) -> Iterator[Change]:
    there = {each["name"]: each for each in mesh.policies}
    for policy in told:
        body = policy.model_dump(exclude={"name"})
        if policy.name not in there:
            yield Change("policy", policy.name, "add", body=body)
            continue
        live = there[policy.name]
        was = {"apart": live["apart"], "slots": live["slots"], **cast("dict[str, Any]", live["weights"])}
        will = {"apart": policy.apart, "slots": policy.slots, **body["weights"]}
        fields = _different(was, will)
        yield Change("policy", policy.name, "change" if fields else "same", fields, body=body)


def _default(file: FleetFile, mesh: Mesh) -> Iterator[Change]:
    if file.default_policy is not None:
        live = next((each["name"] for each in mesh.policies if each["default"]), DEFAULT_NAME)
        if live == file.default_policy:
            yield Change("default policy", live, "same")
        else:
            fields = {"name": (live, file.default_policy)}
            note = f"{live} → {file.default_policy}"
            yield Change("default policy", file.default_policy, "change", fields, note)


def _model_changes(wanted: Sequence[WantedModel], mesh: Mesh, tried: Tried) -> Iterator[Change]:
    there = {each["name"]: each for each in mesh.models}
    scheduled = {each["model_name"]: cast("Mapping[str, Any]", each) for each in mesh.schedulings}
    for model in wanted:
        live = there.get(model.name)
        is_so = {**UNSAID, **scheduled.get(model.name, {})}
        other = {name: value for name, value in model.scheduling.items() if is_so[name] != value}
        if live is None:
            source = source_key(ModelSpec.model_validate(model.spec).source)
            note = f"{source} with {model.spec['engine']}, {replicas(model.spec)} of it"
            yield Change("model", model.name, "add", note=note, body=model.spec, scheduling=other)
            continue
        fields = _model_fields(model, live, tried, mesh.nodes)
        fields |= {_WORDS.get(name, name): (is_so[name], value) for name, value in other.items()}
        note = f"{live['state']}: {live['reason']}" if live["state"] == "unservable" and not fields else ""
        yield Change("model", model.name, "change" if fields else "same", fields, note, model.spec, other)


def _model_fields(
    model: WantedModel, there: "Model", tried: Tried, nodes: Mapping[str, str]
) -> dict[str, tuple[Any, Any]]:
    """What differs, by the file's words."""
    live = cast("Mapping[str, Any]", there["spec"])
    was = {name: live.get(name, _BEFORE.get(name)) for name in _COMPARED}
    was["adapters"] = [{part: each[part] for part in ("name", "path", "scale")} for each in live["adapters"]]
    will = {name: model.spec.get(name) for name in _COMPARED}
    was["layout"], will["layout"] = (_layout(each["layout"] or {}, nodes) for each in (was, will))
    fields = _different(was, will)
    if any(name in fields for name in NUMBERS if name != "selector"):
        fields["replicas"] = (replicas(was), replicas(model.spec))
        for name in ("min_replicas", "max_replicas", "spread_all"):
            fields.pop(name, None)
    named = {_WORDS.get(name, name): both for name, both in fields.items()}
    is_source, wanted_source = _source(live["source"]), _source(model.spec["source"])
    if _same_place(is_source, wanted_source):
        # a branch or a tag of a hub: which commit that is now, only workers can tell
        revision, commit = wanted_source.get("revision", ""), is_source.get("revision", "")
        if revision in ("", commit) or _COMMIT.fullmatch(revision) or named:
            moved = revision not in ("", commit)
        else:
            moved = tried(model) != there["revision"]
        if not moved:
            return named
    return {"source": (_key(is_source), _key(wanted_source)), **named}


def _layout(told: Mapping[str, Any], nodes: Mapping[str, str]) -> dict[str, Any]:
    """What is fixed of a layout, its nodes by their names."""
    fixed = {name: value for name, value in told.items() if value not in (None, [])}
    if "preferred_nodes" in fixed:
        fixed["preferred_nodes"] = [nodes.get(each, each) for each in fixed["preferred_nodes"]]
    if "gpus" in fixed:
        apart = (each.rpartition(":") for each in fixed["gpus"])
        fixed["gpus"] = [f"{nodes.get(node, node)}:{number}" for node, _, number in apart]
    return fixed


def _source(source: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in source.items() if value or name == "kind"}


def _same_place(live: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    drop = {"revision"} if wanted["kind"] == "hf" else set[str]()
    return {k: v for k, v in live.items() if k not in drop} == {k: v for k, v in wanted.items() if k not in drop}


def _key(source: Mapping[str, Any]) -> str:
    return source_key(ModelSpec.model_validate({"source": dict(source), "engine": "any"}).source)


def _alias_changes(file: FleetFile, mesh: Mesh) -> Iterator[Change]:
    there = {each["name"]: each for each in mesh.aliases}
    names = {each["id"]: each["name"] for each in mesh.models}  # a file may name a model by its id
    for alias in file.aliases or ():
        body, will = alias.body, _stands_for(alias.body, names)
        if alias.name not in there:
            yield Change("alias", alias.name, "add", note=will, body=body)
            continue
        was = _stands_for(cast("Mapping[str, Any]", there[alias.name]), names)
        fields = {} if was == will else {"models": (was, will)}
        yield Change("alias", alias.name, "change" if fields else "same", fields, body=body)


def _stands_for(alias: Mapping[str, Any], names: Mapping[str, str]) -> str:
    models = [(names.get(each["model"], each["model"]), each["weight"]) for each in alias["targets"]]
    if alias["rule"] == "order":
        return ", then ".join(name for name, _ in models)
    return ", ".join(f"{name}={weight}" for name, weight in models)


def _pruned(file: FleetFile, wanted: Sequence[WantedModel], mesh: Mesh) -> Iterator[Change]:
    """What there is and the file doesn't name, of the sections that it has. The mesh keeps no note of who made what."""
    if file.aliases is not None:
        kept = {each.name for each in file.aliases}
        yield from (Change("alias", each["name"], "remove") for each in mesh.aliases if each["name"] not in kept)
    if file.models is not None:
        kept = {each.name for each in wanted}
        yield from (Change("model", each["name"], "remove") for each in mesh.models if each["name"] not in kept)
    if file.policies is not None:
        kept = {each.name for each in file.told}
        own = (each for each in mesh.policies if not each["builtin"])
        yield from (Change("policy", each["name"], "remove") for each in own if each["name"] not in kept)


def replicas(spec: Mapping[str, Any]) -> str:
    """How many there are to be, in a word or two."""
    least, most = spec["min_replicas"], spec["max_replicas"]
    if spec["spread_all"]:
        return "all"
    if most and least == most:
        return str(least)
    return f"{least} to {most}" if most else f"{least} or more"


def _different(was: Mapping[str, Any], will: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {name: (was.get(name), value) for name, value in will.items() if was.get(name) != value}


def _text(value: Any) -> str:
    """A value as people read it; what is long is cut."""
    if isinstance(value, dict):
        value = ",".join(f"{name}={_bare(each)}" for name, each in cast("dict[str, Any]", value).items())
    if isinstance(value, list) and all(isinstance(each, str) for each in cast("list[object]", value)):
        value = ", ".join(cast("list[str]", value))
    text = _bare(value) if value not in ("", [], None) else "none"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _bare(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


_LONGEST = 120

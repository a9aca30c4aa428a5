"""What nodes were asked about their files, and what they answered."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from weft_contracts import subjects
from weft_contracts.commit import Cause, Commit, Guard, Recorded
from weft_contracts.digest import lora_key
from weft_contracts.draft import draft_key
from weft_contracts.engines import BUILTIN, Profiles
from weft_contracts.facts.inspection import Requested
from weft_contracts.facts.machine import FileFound, FileMissing
from weft_contracts.facts.node import Removed
from weft_contracts.facts.source import SimulatedSource, UploadSource
from weft_contracts.facts.values import EngineName, ModelSpec
from weft_contracts.ids import InspectionId, NodeId, inspection_id
from weft_contracts.source_keys import source_key


class InspectionKey(NamedTuple):
    """What a node inspects: the source as inspections name it, and the engine that should load it."""

    source: str
    engine: EngineName


def inspection_key(spec: ModelSpec) -> InspectionKey | None:
    """What nodes must inspect for a spec; None where there are no files, or they are yet to be sent."""
    none = isinstance(spec.source, SimulatedSource | UploadSource)
    return None if none else InspectionKey(source_key(spec.source), spec.engine)


def lora_keys(spec: ModelSpec) -> tuple[InspectionKey, ...]:
    """What nodes must inspect for a spec's LoRA adapters."""
    return tuple(InspectionKey(lora_key(adapter), spec.engine) for adapter in spec.adapters)


def keys_beside(spec: ModelSpec, engines: Profiles) -> tuple[InspectionKey, ...]:
    """What nodes must inspect beside a spec's model: its LoRA adapters, then its draft model."""
    profile = engines.get(spec.engine)
    draft = draft_key(spec, profile) if profile is not None else ""
    return (*lora_keys(spec), *((InspectionKey(draft, spec.engine),) if draft else ()))


@dataclass(frozen=True, slots=True)
class Inspection:
    """The last time that a node was asked to inspect something."""

    id: InspectionId
    sequence: int
    answer: FileFound | FileMissing | None = None


@dataclass(slots=True)
class Inspections:
    """Every key's last inspection by node."""

    by_key: dict[InspectionKey, dict[NodeId, Inspection]] = field(
        default_factory=dict[InspectionKey, dict[NodeId, Inspection]]
    )
    _open: dict[tuple[NodeId, InspectionId], InspectionKey] = field(
        default_factory=dict[tuple[NodeId, InspectionId], InspectionKey]
    )

    def apply(self, recorded: Recorded) -> None:
        """Fold a commit of an inspection, a machine or a node."""
        node, _, id = recorded.aggregate.key.partition(".")
        for fact in recorded.facts:
            match fact:
                case Requested(source=source, engine=engine):
                    key = InspectionKey(source, engine)
                    inspection = Inspection(InspectionId(id), recorded.sequence)
                    self.by_key.setdefault(key, {})[NodeId(node)] = inspection
                    self._open[NodeId(node), inspection.id] = key
                case FileFound() | FileMissing():
                    self._answer(NodeId(node), fact)
                case Removed():
                    self._forget(NodeId(node))
                case _:
                    pass

    def last(self, key: InspectionKey, node: NodeId, since: int) -> Inspection | None:
        """The last inspection that stands in the log after `since`."""
        inspection = self.by_key.get(key, {}).get(node)
        return inspection if inspection is not None and inspection.sequence > since else None

    def missing(self, key: InspectionKey, nodes: Mapping[NodeId, object], since: int) -> list[NodeId]:
        """Those of `nodes` that were not asked after `since`."""
        inspections = self.by_key.get(key, {})
        never = nodes.keys() - inspections.keys()
        if not since:
            return sorted(never)
        return [node for node in nodes if node in never or inspections[node].sequence <= since]

    def refused(self, key: InspectionKey, nodes: Iterable[NodeId], before: int) -> list[NodeId]:
        """Those of `nodes` that were asked before `before` and said that they lack the file."""
        inspections = self.by_key.get(key, {})
        return [
            node
            for node in nodes
            if node in inspections
            and inspections[node].sequence < before
            and isinstance(inspections[node].answer, FileMissing)
        ]

    def _answer(self, node: NodeId, fact: FileFound | FileMissing) -> None:
        key = self._open.pop((node, fact.inspection), None)
        if key is None:
            return
        inspection = self.by_key[key].get(node)
        if inspection is not None and inspection.id == fact.inspection:
            self.by_key[key][node] = replace(inspection, answer=fact)

    def _forget(self, node: NodeId) -> None:
        for inspections in self.by_key.values():
            inspections.pop(node, None)
        for key in [key for key in self._open if key[0] == node]:
            del self._open[key]


def inspection_commit(key: InspectionKey, node: NodeId, since: int, cause: Cause, engines: Profiles) -> Commit:
    """The commit that asks a node; the same for every decider that wants an answer newer than `since`."""
    id = inspection_id(f"{key.source}\n{key.engine}\n{node}\n{since}".encode())
    aggregate = subjects.inspection(node, id)
    profile = engines.get(key.engine) if key.engine not in BUILTIN else None
    fact = Requested(source=key.source, engine=key.engine, formats=profile.formats if profile is not None else ())
    return Commit(aggregate, (fact,), Guard(aggregate, 0), cause)

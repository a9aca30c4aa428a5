"""What nodes were asked about their files, and what they answered."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from weft_contracts import subjects
from weft_contracts.commit import Cause, Commit, Guard, Recorded
from weft_contracts.digest import source_key
from weft_contracts.facts.inspection import Requested
from weft_contracts.facts.machine import FileFound, FileMissing
from weft_contracts.facts.node import Removed
from weft_contracts.facts.values import EngineName, ModelSpec
from weft_contracts.ids import InspectionId, NodeId, inspection_id


class Question(NamedTuple):
    """What is asked: the source as inspections name it, and the engine that should load it."""

    source: str
    engine: EngineName


def question_of(spec: ModelSpec) -> Question | None:
    """What nodes must be asked about a spec; None where there are no files."""
    return None if spec.engine == "simulated" else Question(source_key(spec), spec.engine)


@dataclass(frozen=True, slots=True)
class Ask:
    """The last time that a node was asked a question."""

    id: InspectionId
    sequence: int
    answer: FileFound | FileMissing | None = None


@dataclass(slots=True)
class Inspections:
    """Every question's last ask by node."""

    asks: dict[Question, dict[NodeId, Ask]] = field(default_factory=dict[Question, dict[NodeId, Ask]])
    _open: dict[tuple[NodeId, InspectionId], Question] = field(
        default_factory=dict[tuple[NodeId, InspectionId], Question]
    )

    def apply(self, recorded: Recorded) -> None:
        """Fold a commit of an inspection, a machine or a node."""
        node, _, id = recorded.aggregate.key.partition(".")
        for fact in recorded.facts:
            match fact:
                case Requested(source=source, engine=engine):
                    question = Question(source, engine)
                    ask = Ask(InspectionId(id), recorded.sequence)
                    self.asks.setdefault(question, {})[NodeId(node)] = ask
                    self._open[NodeId(node), ask.id] = question
                case FileFound() | FileMissing():
                    self._answer(NodeId(node), fact)
                case Removed():
                    self._forget(NodeId(node))
                case _:
                    pass

    def last(self, question: Question, node: NodeId, since: int) -> Ask | None:
        """The last ask that stands in the log after `since`."""
        ask = self.asks.get(question, {}).get(node)
        return ask if ask is not None and ask.sequence > since else None

    def missing(self, question: Question, nodes: Mapping[NodeId, object], since: int) -> list[NodeId]:
        """Those of `nodes` that were not asked after `since`."""
        asks = self.asks.get(question, {})
        never = nodes.keys() - asks.keys()
        if not since:
            return sorted(never)
        return [node for node in nodes if node in never or asks[node].sequence <= since]

    def refused(self, question: Question, nodes: Iterable[NodeId], before: int) -> list[NodeId]:
        """Those of `nodes` that were asked before `before` and said that they lack the file."""
        asks = self.asks.get(question, {})
        return [
            node
            for node in nodes
            if node in asks and asks[node].sequence < before and isinstance(asks[node].answer, FileMissing)
        ]

    def _answer(self, node: NodeId, fact: FileFound | FileMissing) -> None:
        question = self._open.pop((node, fact.inspection), None)
        if question is None:
            return
        ask = self.asks[question].get(node)
        if ask is not None and ask.id == fact.inspection:
            self.asks[question][node] = replace(ask, answer=fact)

    def _forget(self, node: NodeId) -> None:
        for asks in self.asks.values():
            asks.pop(node, None)
        for key in [key for key in self._open if key[0] == node]:
            del self._open[key]


def asking(question: Question, node: NodeId, since: int, cause: Cause) -> Commit:
    """The commit that asks a node; the same for every decider that wants an answer newer than `since`."""
    id = inspection_id(f"{question.source}\n{question.engine}\n{node}\n{since}".encode())
    aggregate = subjects.inspection(node, id)
    fact = Requested(source=question.source, engine=question.engine)
    return Commit(aggregate, (fact,), Guard(aggregate, 0), cause)

"""`GET /api/explanations/{ref}`: why a replica is where it is, what a node could take, what an alias stands for."""

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypedDict

from fastapi import APIRouter
from weft_api import AliasExplanation, Explained, ModelStands, ReplicaExplanation
from weft_contracts.commit import Recorded
from weft_contracts.facts.name import Aliased
from weft_contracts.facts.replica import Placed, Unplaceable
from weft_contracts.ids import NodeId, ReplicaId
from weft_contracts.subjects import EVENTS, Aggregate, replica
from weft_contracts.suspects import Suspects
from weft_eventlog import EventLog, LogUnavailable
from weft_fleet import AliasView, ModelView, NodeView, ReplicaView
from weft_placement import ClaimUnknown, chosen_policy, one_more
from weft_placement.dry_run import next_replica
from weft_placement.explain import (
    Explanation,
    NotInTheLog,
    explain,
    explain_as_of,
    explain_by_receipt,
    last_decision,
)
from weft_placement.fleet_copy import copied
from weft_placement.remedies import question_of
from weft_placement.set_aside import set_aside

from weft_gateway.domain.alias_shapes import alias_shape
from weft_gateway.domain.explanations import (
    explanation_shape,
    last_end,
    last_replicas,
    made_room,
    node_explanation,
    replicas_of,
    stands_shape,
    troubles,
)
from weft_gateway.domain.model_state import standing
from weft_gateway.domain.refused import Refused
from weft_gateway.inbound.admin.remedy_search import Remedied, RemedySearch
from weft_gateway.inbound.http.answer import Answer, answering
from weft_gateway.inbound.http.openapi_document import PROBLEMS
from weft_gateway.outbound.changes import away
from weft_gateway.projections.directory import Directory
from weft_gateway.projections.fleet_marks import MOST_COMMITS, FleetMarks

_STEP = 64
"""Commits that are folded at a time, before others have their turn."""

_TOO_FAR = (
    f"it was decided more than {MOST_COMMITS} commits behind the log's beginning, and before the places at which this"
    " gateway noted the fleet and the snapshots that are kept"
)


class Stands(TypedDict, total=False):
    """How a model stands; nothing where no model was asked for."""

    stands: ModelStands


class Explanations:
    """Answers from memory and from single aggregates of the log; one decision at a time is computed again."""

    def __init__(
        self,
        directory: Directory,
        log: EventLog,
        remedies: RemedySearch,
        suspects: Callable[[], Iterable[Aggregate]],
        marks: FleetMarks,
    ) -> None:
        """`suspects`: aggregates with an event that can't be read, now; `marks`: where the fleet stood."""
        self._marks = marks
        self._directory = directory
        self._log = log
        self._remedies = remedies
        self._suspects = suspects
        self._recomputing = asyncio.Lock()
        self.router = APIRouter(tags=["explanations"], responses=PROBLEMS)
        answering(self.router)("/api/explanations/{ref:path}", self.get, "GET")

    async def get(self, ref: str) -> Answer[Explained]:
        """Of a replica by id, a model by name (the one of its replicas that answers, or comes next to it; where it has
        none, where one more would go), an alias, or a node by name or id."""
        fleet = self._directory.fleet
        try:
            if (alias := fleet.aliases.get(ref)) is not None:
                return Answer({"kind": "alias", "alias": await self._alias(alias)})
            own = replicas_of(fleet, ref)
            one = fleet.replicas.get(ReplicaId(ref)) or (own[0] if own else None)
            if one is not None:
                shape = await self._replica(one, own[1:])
                return Answer({"kind": "replica", "replica": {**shape, **self._stands(ref)}})
            if (model := fleet.model_named(ref)) is not None:
                return Answer({"kind": "model", "replica": await self._next(model)})
        except LogUnavailable:
            raise away() from None
        if (node := self._node(ref)) is not None:
            return Answer({"kind": "node", "node": node_explanation(fleet, node, set_aside(self._suspects()))})
        raise Refused(
            404,
            f"There is no replica, model, alias or node {ref[:128]!r}: `weft status` lists those that there are.",
            param="ref",
            code="not_found",
        )

    def _node(self, ref: str) -> NodeView | None:
        nodes = self._directory.fleet.nodes
        found = nodes.get(NodeId(ref)) or next((each for each in nodes.values() if each.name == ref), None)
        return None if found is None or found.removed else found

    async def _replica(self, view: ReplicaView, others: list[ReplicaView]) -> ReplicaExplanation:
        fleet = self._directory.fleet
        name = fleet.models[view.model].name
        decisions = await self._read(replica(view.id).filter)
        ends = last_end(await self._read(f"{EVENTS}.run.*.{view.id}.>"))
        why_not = ""
        if (decision := last_decision(decisions, view.id)) is None:
            found = explain(fleet, view.id, set_aside=set_aside(self._suspects()))
        else:
            found, why_not = await self._recomputed(view, *decision)
            found = found or explain_by_receipt(fleet, view.id, decision[0])
        found = replace(found, outcome=made_room(fleet, view, found.outcome))
        shape = explanation_shape(found, ends, troubles(fleet, name, others))
        if why_not:
            shape["why_not_recomputed"] = why_not
        return {**shape, **await self._remedied(view)}

    async def _next(self, model: ModelView) -> ReplicaExplanation:
        """Of a model that has no replica: where one more would go, and how the last ones ended."""
        found = one_more(self._directory.fleet, model, set_aside(self._suspects()), now=time.time())
        lines = troubles(self._directory.fleet, model.name, ())
        stands = self._stands(model.name)
        ends = last_end(await self._read(*(f"{EVENTS}.run.*.{each}.>" for each in last_replicas(model))))
        return {**explanation_shape(found, ends, lines), **stands, **await self._remedied(next_replica(model))}

    async def _remedied(self, view: ReplicaView) -> Remedied:
        """What would have to change for it to have a place now; nothing of one that has one, or isn't wanted."""
        fleet = self._directory.fleet
        if view.placed is not None or not view.wanted or view.evicted:
            return {}
        try:
            policy = chosen_policy(fleet, fleet.spec_of(view)[1])
            question = question_of(fleet, view, policy, set_aside(self._suspects()), now=time.time())
        except ClaimUnknown:
            return {}
        return await self._remedies.of(question)

    def _stands(self, ref: str) -> Stands:
        """How a model stands, where it is one's name."""
        model = self._directory.fleet.model_named(ref)
        if model is None:
            return {}
        return {"stands": stands_shape(model, standing(model, self._directory.replicas(model)))}

    async def _recomputed(
        self, view: ReplicaView, decision: Placed | Unplaceable, sequence: int
    ) -> tuple[Explanation | None, str]:
        """Every node's answer at the decision's position; None, and why, where it isn't computed again."""
        if self._recomputing.locked():
            return None, "another one is being computed; ask again"
        async with self._recomputing:
            mark = await self._marks.before(decision.receipt.position, sequence)
            if mark is None:
                return None, _TOO_FAR
            fleet, suspects, later = copied(mark.fleet), Suspects(mark.suspects), list[Recorded]()
            async for commit in self._log.read(f"{EVENTS}.>", after=fleet.position, upto=sequence - 1):
                if commit.sequence <= decision.receipt.position:
                    fleet.apply(suspects.read(commit))
                else:
                    later.append(commit)
                if commit.sequence % _STEP == 0:
                    await asyncio.sleep(0)
        try:
            return explain_as_of(fleet, later, view.id, decision, set_aside(suspects.why)), ""
        except NotInTheLog:
            return None, "the log up to its position doesn't have the replica"

    async def _alias(self, view: AliasView) -> AliasExplanation:
        commits = await self._read(Aggregate("name", view.key).filter)
        set_at = (c.sequence for c in reversed(commits) if any(isinstance(fact, Aliased) for fact in c.facts))
        return {**alias_shape(view, self._directory.stands), "position": next(set_at, 0)}

    async def _read(self, *filters: str) -> list[Recorded]:
        return [commit async for commit in self._log.read(*filters)] if filters else []

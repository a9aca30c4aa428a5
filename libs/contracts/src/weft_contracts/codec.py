"""Facts to bytes and back. About 3 µs a fact either way."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from weft_contracts import headers as h
from weft_contracts.catalogue import BY_TYPE, SKIPPABLE
from weft_contracts.commit import MAX_COMMIT_BYTES, Commit, Recorded
from weft_contracts.facts.artifact import ArtifactFact
from weft_contracts.facts.fact import Fact, Unknown, Unreadable, Voided
from weft_contracts.facts.inspection import InspectionFact
from weft_contracts.facts.key import KeyFact
from weft_contracts.facts.machine import MachineFact
from weft_contracts.facts.mesh import MeshFact
from weft_contracts.facts.model import ModelFact
from weft_contracts.facts.name import NameFact
from weft_contracts.facts.node import NodeFact
from weft_contracts.facts.replica import ReplicaFact
from weft_contracts.facts.request import RequestFact
from weft_contracts.facts.run import RunFact
from weft_contracts.facts.token import TokenFact
from weft_contracts.ids import CorrelationId, EventId
from weft_contracts.subjects import Aggregate, Kind, parse
from weft_contracts.upcast import lift

_LISTS: dict[Kind, Any] = {
    "node": list[NodeFact],
    "token": list[TokenFact],
    "mesh": list[MeshFact],
    "machine": list[MachineFact],
    "run": list[RunFact],
    "model": list[ModelFact],
    "replica": list[ReplicaFact],
    "request": list[RequestFact],
    "inspection": list[InspectionFact],
    "artifact": list[ArtifactFact],
    "name": list[NameFact],
    "key": list[KeyFact],
}


class _Validators(dict[Kind, Callable[[bytes], list[Fact]]]):
    """By kind, made when a commit of it is first read: all of them take an eighth of a service's start.

    They are the validators themselves: an adapter's own way to its one takes 1 µs a call.
    """

    def __missing__(self, kind: Kind) -> Callable[[bytes], list[Fact]]:
        made = self[kind] = TypeAdapter[list[Fact]](_LISTS[kind]).validator.validate_json
        return made


_VALIDATE = _Validators()
_TRACE = slice(3, 35)
"""Where a W3C trace parent holds its trace's id."""
_NONE: frozenset[str] = frozenset()
_HEADER = re.compile(r"[ -~]{0,200}")
"""What is taken from a header: it goes on into the headers of what follows from the commit."""
_NUL = b"\\u0000"
_QUOTED = 80
WORKERS_KINDS: frozenset[Kind] = frozenset({"machine", "run"})
"""Kinds that workers write. What one of them says wrongly concerns its own aggregate, and stops nobody."""


class CommitTooLarge(ValueError):
    """The facts take more than 64 KiB: put the large part into a blob and name it."""


def encode(commit: Commit) -> bytes:
    """The body of a commit: a JSON list of its facts. Raises CommitTooLarge."""
    body = b"[" + b",".join(fact.model_dump_json().encode() for fact in commit.facts) + b"]"
    if len(body) > MAX_COMMIT_BYTES:
        raise CommitTooLarge(f"a commit on {commit.aggregate} takes {len(body)} bytes, {MAX_COMMIT_BYTES} are allowed")
    return body


def encode_headers(commit: Commit, event_id: EventId, actor: str, traceparent: str = "") -> dict[str, str]:
    """The headers of a commit, without the guard's, which belong to the transport.

    `traceparent` names the span that writes it; a commit of another trace keeps its own.
    """
    headers = {
        h.EVENT_ID: event_id,
        h.CORRELATION_ID: commit.cause.correlation_id,
        h.ACTOR: actor,
        h.SCHEMA: h.SCHEMA_VERSION,
    }
    if commit.cause.causation_id:
        headers[h.CAUSATION_ID] = commit.cause.causation_id
    if skippable := [f.type for f in commit.facts if (commit.aggregate.kind, f.type) in SKIPPABLE]:
        headers[h.SKIPPABLE] = ",".join(skippable)
    own = commit.cause.traceparent
    if own and own[_TRACE] != traceparent[_TRACE]:
        traceparent = own
    if traceparent:
        headers[h.TRACEPARENT] = traceparent
    return headers


def decode_facts(kind: Kind, body: bytes, skippable: frozenset[str] = frozenset(), said: str = "") -> tuple[Fact, ...]:
    """The facts of a commit's body. What can't be read comes as Unknown or Unreadable, never as an error.

    `said` is the type that the commit's subject names, which only who may write it can publish to.
    """
    try:
        facts = tuple(_VALIDATE[kind](body))
    except ValidationError:
        facts = ()
    if kind in WORKERS_KINDS:
        if not facts:
            return _of_worker(kind, _decode_one_by_one(kind, body, skippable), said)
        if _NUL in body:
            return (Unreadable(why="a text with a character of value 0"),)
    return facts or _decode_one_by_one(kind, body, skippable)


def _of_worker(kind: Kind, facts: tuple[Fact, ...], said: str) -> tuple[Fact, ...]:
    """What a worker's commit comes to: it can't make readers wait for an upgrade, and only operators void."""
    return tuple(
        Unreadable(why=f"{kind}.{fact.type} is nothing that a worker says")
        if (isinstance(fact, Voided) and said != "voided") or (isinstance(fact, Unknown) and not fact.skippable)
        else fact
        for fact in facts
    )


def _decode_one_by_one(kind: Kind, body: bytes, skippable: frozenset[str]) -> tuple[Fact, ...]:
    try:
        parsed: object = json.loads(body.decode())
    except (ValueError, RecursionError) as error:
        return (Unreadable(why=f"not JSON: {error}"),)
    if not isinstance(parsed, list) or not parsed:
        return (Unreadable(why="not a list of facts"),)
    return tuple(_decode_one(kind, item, skippable) for item in cast(list[object], parsed))


def _decode_one(kind: Kind, item: object, skippable: frozenset[str]) -> Fact:
    if not isinstance(item, dict):
        return Unreadable(why="a fact is not an object")
    body = cast(dict[str, Any], item)
    type_ = _legible(body.get("type"))
    try:
        version = int(body.get("v", 1))
        if type_ == "voided":
            return Voided.model_validate_json(json.dumps(body))
        known = BY_TYPE.get((kind, type_))
        body = lift(kind, dict(body))
        if known is None or int(body.get("v", 1)) > known.version:
            return Unknown(type=type_, v=version, skippable=type_ in skippable)
        return known.fact.model_validate_json(json.dumps(body))  # and not as Python: half characters are no text
    except (ValidationError, ValueError, TypeError, KeyError, ArithmeticError, RecursionError) as error:
        first = _legible(" ".join(str(error).splitlines()[:3]), 3 * _QUOTED)
        return Unreadable(why=f"{kind}.{type_}: {first}")


def _legible(text: object, most: int = _QUOTED) -> str:
    """The beginning of what should be a word, as text that anybody can store."""
    return str(text)[:most].encode("utf-8", "replace").decode().replace("\0", "?")


def decode(subject: str, sequence: int, body: bytes, headers: Mapping[str, str] | None, at: float) -> Recorded:
    """A message of the log as a commit. Raises BadSubject for a subject that is none of ours."""
    aggregate, said = parse(subject)
    found = {name: text for name, text in (headers or {}).items() if name == h.SKIPPABLE or _HEADER.fullmatch(text)}
    named = found.get(h.SKIPPABLE)
    skippable = frozenset(filter(None, named.split(","))) if named else _NONE
    causation = found.get(h.CAUSATION_ID)
    return Recorded(
        sequence=sequence,
        aggregate=aggregate,
        facts=decode_facts(aggregate.kind, body, skippable, said),
        event_id=EventId(found.get(h.EVENT_ID, "")),
        correlation_id=CorrelationId(found.get(h.CORRELATION_ID, "")),
        causation_id=EventId(causation) if causation else None,
        actor=actor_of(aggregate, found.get(h.ACTOR, "")),
        at=at,
        traceparent=found.get(h.TRACEPARENT, ""),
    )


def actor_of(aggregate: Aggregate, said: str) -> str:
    """Who wrote a commit. What stands under a node's name only that node can have written, whatever it says."""
    return aggregate.key.partition(".")[0] if aggregate.kind in WORKERS_KINDS else said


def aggregate_of(subject: str) -> Aggregate:
    """The aggregate that a subject names. Raises BadSubject."""
    return parse(subject)[0]

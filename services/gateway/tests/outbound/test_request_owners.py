"""A gateway answers the requests that it owns itself, with what they ask for, and no others."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from weft_contracts.codec import encode
from weft_contracts.commit import MAX_COMMIT_BYTES, Commit
from weft_contracts.facts.key import Revoked
from weft_contracts.facts.request import (
    ChangeRequest,
    CordonRequested,
    DeleteRequested,
    DeployRequested,
    KeyRevocationRequested,
)
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import KeyId, ModelId, NodeId, RequestId
from weft_contracts.subjects import api_key
from weft_gateway.domain.refused import Refused
from weft_gateway.outbound.changes import Changes, OwnChange
from weft_gateway.outbound.log_space import LogSpace

ID = RequestId("q-1")
OWN = OwnChange(api_key(KeyId("k-1")), Revoked(), 1, {"key": "k-1"})


class Taken:
    """Takes whatever is appended."""

    def __init__(self) -> None:
        self.commits: list[Sequence[Commit]] = []
        self.awaited: list[int] = []

    async def append(self, *commits: Commit, timeout: float) -> tuple[int, ...]:
        self.commits.append(commits)
        return tuple(range(7, 7 + len(commits)))

    async def folded(self, sequence: int, timeout: float) -> None:
        self.awaited.append(sequence)
        raise TimeoutError  # a fold that is slow fails nothing

    @property
    def changes(self) -> Changes:
        log: Any = SimpleNamespace(acting_as=lambda _: self)  # pyright: ignore
        return Changes(log, lambda: True, LogSpace(None, lambda: 0), self.folded)


@pytest.mark.parametrize("fact", [CordonRequested(node=NodeId("n-a")), DeleteRequested(model=ModelId("m-a"))])
async def test_what_another_service_owns_is_never_answered_here(fact: ChangeRequest) -> None:
    taken = Taken()
    with pytest.raises(ValueError, match="is answered by re"):
        await taken.changes.ask(ID, fact, "c", actor="somebody", own=OWN)
    await taken.changes.ask(ID, fact, "c", actor="somebody")
    assert [[(fact,)]] == [[each.facts for each in batch] for batch in taken.commits]


async def test_what_gateways_own_is_never_left_without_an_answer() -> None:
    taken, fact = Taken(), KeyRevocationRequested(key=KeyId("k-1"))
    with pytest.raises(ValueError, match="is answered by gateway"):
        await taken.changes.ask(ID, fact, "c", actor="somebody")
    await taken.changes.ask(ID, fact, "c", actor="somebody", own=OWN)
    (batch,) = taken.commits
    assert ["key_revocation_requested", "fulfilled", "revoked"] == [f.type for each in batch for f in each.facts]


async def test_what_gateways_own_is_answered_once_the_change_behind_the_outcome_is_folded_too() -> None:
    taken = Taken()
    await taken.changes.ask(ID, CordonRequested(node=NodeId("n-a")), "c", actor="somebody")
    assert [] == taken.awaited
    await taken.changes.ask(ID, KeyRevocationRequested(key=KeyId("k-1")), "c", actor="somebody", own=OWN)
    assert [8] == taken.awaited


async def test_what_no_commit_can_hold_is_refused_before_it_is_sent() -> None:
    # given a log that encodes what it is given, as the real one does before it sends
    class Encoding(Taken):
        async def append(self, *commits: Commit, timeout: float) -> tuple[int, ...]:
            for each in commits:
                encode(each)
            return await super().append(*commits, timeout=timeout)

    log = Encoding()
    # when
    spec = ModelSpec(source=SimulatedSource(), engine="simulated", engine_args={"note": "x" * MAX_COMMIT_BYTES})
    with pytest.raises(Refused) as refused:
        await log.changes.ask(ID, DeployRequested(name="m", spec=spec), "c", actor="somebody")
    # then
    assert (413, []) == (refused.value.status, log.commits)
    assert "more than the 65536 bytes" in refused.value.sentence

"""A gateway answers the requests that it owns itself, with what they ask for, and no others."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from weft_contracts.commit import Commit
from weft_contracts.facts.key import Revoked
from weft_contracts.facts.request import ChangeRequest, CordonRequested, DeleteRequested, KeyRevocationRequested
from weft_contracts.ids import KeyId, ModelId, NodeId, RequestId
from weft_contracts.subjects import api_key
from weft_gateway.outbound.changes import Changes, OwnChange
from weft_gateway.outbound.log_space import LogSpace

ID = RequestId("q-1")
OWN = OwnChange(api_key(KeyId("k-1")), Revoked(), 1, {"key": "k-1"})


class Taken:
    """Takes whatever is appended."""

    def __init__(self) -> None:
        self.commits: list[Sequence[Commit]] = []

    async def append(self, *commits: Commit, timeout: float) -> None:
        self.commits.append(commits)

    @property
    def changes(self) -> Changes:
        log: Any = SimpleNamespace(acting_as=lambda _: self)  # pyright: ignore
        return Changes(log, lambda: True, LogSpace(None, lambda: 0))


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

"""A node's secrets: fetched when they are there, opened by its key alone, newer ones taken and older ones not."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from weft_contracts.secrets import bound_to_node
from weft_identity import sealing
from weft_worker_agent.outbound.mesh import node_secrets
from weft_worker_agent.outbound.mesh.gateway import NotNow, Refused
from weft_worker_agent.outbound.mesh.identity import NodeIdentity, load_or_make
from weft_worker_agent.outbound.mesh.node_secrets import NodeSecrets, NoSecret, lines
from weft_worker_agent.outbound.mesh.sealed_copy import CannotOpen, SealedCopy, opened

NAME = "a-key"


@pytest.fixture
def identity(tmp_path: Path) -> NodeIdentity:
    return load_or_make(tmp_path)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_secrets, "_FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(node_secrets, "_LONGEST_PAUSE_S", 0.001)


def copy_for(identity: NodeIdentity, value: str, version: int = 1, name: str = NAME) -> SealedCopy:
    """As the registry makes it."""
    key = sealing.node_key(identity.public_key)
    return SealedCopy(version, sealing.seal(value.encode(), key, bound_to_node(identity.node, name, version)))


class Gateway:
    """Answers as it is told; the last answer stands."""

    def __init__(self, identity: NodeIdentity, *answers: SealedCopy | Exception | None) -> None:
        self.identity = identity
        self.answers = list(answers)
        self.asked: list[tuple[str, int]] = []

    async def secret(self, name: str, have: int) -> SealedCopy | None:
        self.asked.append((name, have))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def held_by(gateway: Any, clock: Callable[[], float] = lambda: 0.0) -> NodeSecrets:
    return NodeSecrets(gateway, clock)


def ticking() -> Callable[[], float]:
    """A clock that is a second later at each look."""
    now = [0.0]

    def clock() -> float:
        now[0] += 1.0
        return now[0]

    return clock


def test_a_copy_opens_with_the_nodes_key_for_its_name_and_version_alone(identity: NodeIdentity, tmp_path: Path) -> None:
    copy = copy_for(identity, "ä value", 3)
    assert "ä value" == opened(copy, identity.node, NAME, identity.seed)
    (tmp_path / "other").mkdir()
    other = load_or_make(tmp_path / "other")
    for wrong in (
        (copy, identity.node, "another", identity.seed),
        (SealedCopy(4, copy.sealed), identity.node, NAME, identity.seed),
        (copy, other.node, NAME, identity.seed),
        (copy, identity.node, NAME, other.seed),
        (SealedCopy(3, b"short"), identity.node, NAME, identity.seed),
    ):
        with pytest.raises(CannotOpen):
            opened(*wrong)


async def test_a_start_waits_until_the_copy_is_laid_out(identity: NodeIdentity) -> None:
    gateway = Gateway(identity, NotNow("not yet", 202), Refused(403, "403: not assigned"), copy_for(identity, "v"))
    found = await held_by(gateway).fetched({NAME}, lambda: True)
    assert "v" == found[NAME].value
    assert [(NAME, 0)] * 3 == gateway.asked
    assert [{"name": NAME, "value": "v"}] == [json.loads(line) for line in lines(found).splitlines()]
    assert "'v'" not in repr(found)


@pytest.mark.parametrize("answer", [Refused(404, "404: there is no secret"), NotNow("nothing answers")])
async def test_a_start_that_waits_in_vain_says_what_it_heard_last(identity: NodeIdentity, answer: Exception) -> None:
    with pytest.raises(NoSecret) as said:
        await held_by(Gateway(identity, answer), ticking()).fetched({NAME}, lambda: True)
    assert f"the secret {NAME} could not be fetched within 30 s: {answer}" == str(said.value)


async def test_what_nobody_waits_for_any_more_is_given_up_at_once(identity: NodeIdentity) -> None:
    gateway = Gateway(identity, NotNow("not yet"))
    with pytest.raises(NoSecret):
        await held_by(gateway).fetched({NAME}, lambda: False)
    assert 1 == len(gateway.asked)


async def test_a_newer_value_is_taken_and_an_older_one_is_not(identity: NodeIdentity) -> None:
    gateway = Gateway(
        identity, copy_for(identity, "two", 2), None, copy_for(identity, "one", 1), copy_for(identity, "three", 3)
    )
    secrets = held_by(gateway)
    values = [(await secrets.refreshed({NAME}))[NAME].value for _ in range(4)]
    assert ["two", "two", "two", "three"] == values
    assert [0, 2, 2, 2] == [have for _, have in gateway.asked]


async def test_a_gateway_that_is_away_leaves_what_was_known(identity: NodeIdentity) -> None:
    gateway = Gateway(identity, copy_for(identity, "v"), NotNow("nothing answers"))
    secrets = held_by(gateway, ticking())
    await secrets.refreshed({NAME})
    assert "v" == (await secrets.refreshed({NAME}))[NAME].value
    assert "v" == (await secrets.fetched({NAME}, lambda: True))[NAME].value


async def test_what_nothing_names_any_more_is_forgotten(identity: NodeIdentity) -> None:
    gateway = Gateway(identity, copy_for(identity, "v"), NotNow("nothing answers"))
    secrets = held_by(gateway, ticking())
    assert {NAME} == (await secrets.refreshed({NAME})).keys()
    assert {} == await secrets.refreshed(set())
    with pytest.raises(NoSecret):
        await secrets.fetched({NAME}, lambda: True)

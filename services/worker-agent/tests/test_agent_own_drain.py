"""A worker's own drain: asked for, waited for, broken off, and lifted when it is back."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from weft_contracts import subjects
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.node import Approved, Drained, Draining, Removed, Resumed
from weft_contracts.ids import NodeId
from weft_testing import HandLog
from weft_worker_agent.inbound import own_drain as module
from weft_worker_agent.inbound.own_drain import OwnDrain
from weft_worker_agent.outbound.mesh.gateway import Gateway, NotNow, Refused
from weft_worker_agent.outbound.mesh.identity import load_or_make
from weft_worker_agent.projections.own_log import OwnLog

OWN = Draining(why="worker", deadline_s=20)
ADMINS = Draining(why="admin", deadline_s=20)


@dataclass(frozen=True, slots=True)
class Answering(Gateway):
    """What is asked of it is written down, and answered by what stands there."""

    asked: list[str] = field(default_factory=list[str])
    answers: dict[str, Callable[[], Any]] = field(default_factory=dict[str, Callable[[], Any]])

    async def drain(self, deadline_s: float) -> None:
        self.asked.append(f"drain {deadline_s:g}")
        self.answers["drain"]()

    async def resume(self) -> None:
        self.asked.append("resume")
        self.answers["resume"]()


class Node:
    """A node's own log, and who leaves."""

    def __init__(self, log: HandLog, id: NodeId, folder: Path) -> None:
        self._log, self._id = log, id
        self.own = OwnLog()
        self.own.caught_up = True
        log.listen(self.own.fold)
        self.gateway = Answering("http://gateway", load_or_make(folder))
        self.leaving = OwnDrain(self.gateway, self.own)
        self.say(Approved(by="t"))

    def say(self, *facts: Fact) -> None:
        self._log.given(subjects.node(self._id), *facts)

    async def drains(self, within_s: float = 20) -> None:
        async with asyncio.timeout(30):
            await self.leaving.drain(within_s)


@pytest.fixture
def here(hand_log: HandLog, node: NodeId, tmp_path: Path) -> Node:
    return Node(hand_log, node, tmp_path)


def fail(error: Exception) -> Callable[[], None]:
    def answer() -> None:
        raise error

    return answer


async def test_a_drain_is_asked_for_and_waited_for(here: Node) -> None:
    def drain() -> None:
        here.say(OWN)
        asyncio.get_running_loop().call_later(0.3, here.say, Drained())

    here.gateway.answers["drain"] = drain
    await here.drains()
    assert (["drain 20"], True) == (here.gateway.asked, here.own.part.drained)


async def test_a_drain_that_takes_too_long_ends_at_its_bound(here: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MARGIN_S", 0.1)
    here.gateway.answers["drain"] = lambda: here.say(OWN)
    await here.drains(0.1)
    assert not here.own.part.drained


async def test_who_is_told_to_end_at_once_waits_for_no_drain(here: Node) -> None:
    here.gateway.answers["drain"] = lambda: asyncio.get_running_loop().call_later(0.1, here.leaving.hurry.set)
    await here.drains(600)
    assert ["drain 600"] == here.gateway.asked


async def test_a_gateway_that_is_away_is_asked_again_and_then_given_up(
    here: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ASK_S", 0.5)
    here.gateway.answers["drain"] = fail(NotNow("no answer"))
    await here.drains(600)
    assert 2 <= len(here.gateway.asked)


async def test_a_gateway_that_refuses_is_asked_once(here: Node) -> None:
    here.gateway.answers["drain"] = fail(Refused(404, "there is no such route"))
    await here.drains(600)
    assert ["drain 600"] == here.gateway.asked


@pytest.mark.parametrize("how", ["not folded", "removed", "drained already"])
async def test_where_there_is_nothing_to_drain_nobody_is_asked(here: Node, how: str) -> None:
    match how:
        case "not folded":
            here.own.caught_up = False
        case "removed":
            here.say(Removed(why="sold"))
        case _:
            here.say(ADMINS, Drained())
    await here.drains()
    assert [] == here.gateway.asked


@pytest.fixture
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOOK_S", 0.02)


async def come_back(here: Node, *, lifts: bool) -> None:
    """Be back for some looks; where it lifts a drain, from when that is lifted on."""
    back = asyncio.create_task(here.leaving.come_back())
    async with asyncio.timeout(30):
        while lifts and here.own.part.drain is not None:
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.5)
    back.cancel()
    await asyncio.gather(back, return_exceptions=True)


@pytest.mark.usefixtures("quick_looks")
async def test_a_drain_of_an_earlier_life_is_lifted_once(here: Node) -> None:
    here.say(OWN, Drained())
    here.gateway.answers["resume"] = lambda: here.say(Resumed())
    await come_back(here, lifts=True)
    assert (["resume"], None) == (here.gateway.asked, here.own.part.drain)


@pytest.mark.usefixtures("quick_looks")
async def test_an_admins_drain_is_left_alone_and_so_is_the_one_under_way(here: Node) -> None:
    here.say(ADMINS, Drained())
    await come_back(here, lifts=False)
    here.say(Resumed())
    here.gateway.answers["drain"] = lambda: here.say(OWN, Drained())
    await here.drains()
    await come_back(here, lifts=False)
    assert ["drain 20"] == here.gateway.asked


async def test_what_a_node_says_is_signed_for_that_alone(here: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, dict[str, Any]]] = []

    class Answer:
        status_code, is_success = 200, True

    async def post(_: Gateway, path: str, body: bytes) -> Answer:
        sent.append((path, json.loads(body)))
        return Answer()

    monkeypatch.setattr(Gateway, "_post", post)
    gateway = Gateway("http://gateway", here.gateway.identity)
    await gateway.drain(7)
    await gateway.resume()
    for (path, body), what, more in zip(sent, ("drain", "resume"), ({"deadline_s": 7}, {}), strict=True):
        signed = f"weft-{what}:{gateway.identity.node}:{body['nonce']}".encode()
        assert f"/api/node/{what}" == path
        assert {"node": gateway.identity.node, "nonce": body["nonce"], **more} == {
            key: value for key, value in body.items() if key != "signature"
        }
        assert gateway.identity.sign(signed) == body["signature"]

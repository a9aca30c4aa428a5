"""Many agents in one process: each a coroutine with its own key, connection, credential, lease and part of the log.

They join by the real way. What they are told to run they call ready at once: there is no engine, and who asks one
finds nobody.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import httpx
from nats.aio.client import Client
from weft_contracts.commit import Cause, Commit, Recorded
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.run import Loading, Ready, Stopped
from weft_contracts.ids import CorrelationId, Incarnation, ReplicaId
from weft_contracts.subjects import run
from weft_eventlog import WorkerLog

from weft_testing.bare_node import BareNode, close_all

LEASE_S = 2.0
AT_ONCE = 32
"""Registrations, approvals and polls under way at a time."""


class Agent(BareNode):
    """One node with its coroutines."""

    def __init__(self, url: str, name: str, http: httpx.AsyncClient, labels: dict[str, str]) -> None:
        super().__init__(url, name, http)
        self.labels = labels
        self.shown: dict[str, Any] = {}
        self.client: Client | None = None
        self.running: dict[ReplicaId, int] = {}
        """Epoch of each replica that it was given."""
        self._tasks: list[asyncio.Task[None]] = []
        self._work: set[asyncio.Task[None]] = set()
        self._begun = False

    async def start(self) -> None:
        """Connect, say what it has, and live."""
        self.client = await self.connect(self.shown)
        if not self._begun:
            await self.report(self.client)
            self._begun = True
        log = WorkerLog(self.client, self.id)
        self._tasks = [asyncio.create_task(self._lease()), asyncio.create_task(log.run(lambda c: self._fold(log, c)))]

    async def die(self) -> None:
        """As by `kill -9`: nothing is said, the socket is gone."""
        for task in (*self._tasks, *self._work):
            task.cancel()
        await asyncio.gather(*self._tasks, *self._work, return_exceptions=True)
        if self.client is not None:
            await close_all([self.client])
        self.client = None

    async def _lease(self) -> None:
        assert self.client is not None
        await asyncio.sleep(random.uniform(0, LEASE_S))
        while True:
            if self.client.is_connected:
                await self.lease(self.client)
            await asyncio.sleep(LEASE_S)

    def _fold(self, log: WorkerLog, commit: Recorded) -> None:
        for fact in commit.facts:
            if commit.aggregate.kind != "node":
                continue
            replica = ReplicaId(str(getattr(fact, "replica", "")))
            if fact.type == "assigned" and self.running.get(replica) != (epoch := int(getattr(fact, "epoch", 0))):
                self.running[replica] = epoch
                incarnation = Incarnation(f"{self.name}-{epoch}")
                ready = Ready(epoch=epoch, incarnation=incarnation, port=1, engine="simulated", engine_version="1")
                self._say(log, replica, Loading(epoch=epoch, incarnation=incarnation), ready)
            elif fact.type == "unassigned" and replica in self.running:
                self._say(log, replica, Stopped(epoch=self.running.pop(replica), why="retired"))

    def _say(self, log: WorkerLog, replica: ReplicaId, *facts: Fact) -> None:
        commit = Commit(run(self.id, replica), facts, None, Cause(CorrelationId(f"run-{replica}")))
        task = asyncio.create_task(_appended(log, commit))
        self._work.add(task)
        task.add_done_callback(self._work.discard)


async def _appended(log: WorkerLog, commit: Commit) -> None:
    with contextlib.suppress(Exception):  # it dies while it speaks
        await log.append(commit)


class Swarm:
    """Agents of one mesh."""

    def __init__(self, url: str, count: int, **labels: str) -> None:
        limits = httpx.Limits(max_connections=AT_ONCE)
        self.http = httpx.AsyncClient(timeout=60.0, limits=limits, trust_env=False)
        self.url = url
        self.agents = [Agent(url, f"agent-{number:04}", self.http, labels) for number in range(count)]

    async def join(self) -> dict[str, float]:
        """Register all, approve each, poll for each credential, connect. Seconds of each step."""
        asked = {"name": "swarm", "auto_approve": False, "most_waiting": len(self.agents)}
        made = await self.http.post(f"{self.url}/api/tokens", json=asked)
        token = made.raise_for_status().json()["secret"]

        async def register(agent: Agent) -> None:
            answer = await agent.register(token, labels=agent.labels)
            assert answer.status_code == 202, answer.text

        async def approve(agent: Agent) -> None:
            (await self.http.post(f"{self.url}/api/nodes/{agent.id}/approve")).raise_for_status()

        async def poll(agent: Agent) -> None:
            agent.shown = await agent.credential()

        took: dict[str, float] = {}
        for name, step in (("register", register), ("approve", approve), ("poll", poll), ("connect", Agent.start)):
            began = time.monotonic()
            await each(self.agents, step)
            took[name] = time.monotonic() - began
        return took

    async def die(self, agents: Iterable[Agent]) -> None:
        """All at once."""
        await asyncio.gather(*(agent.die() for agent in agents))

    async def states(self) -> dict[str, str]:
        """What the mesh says of every node, by id."""
        status = (await self.http.get(f"{self.url}/api/status")).raise_for_status().json()
        return {node["id"]: node["state"] for node in status["nodes"]}

    async def close(self) -> None:
        """End them all."""
        await self.die(self.agents)
        await self.http.aclose()


async def each(agents: Iterable[Agent], step: Callable[[Agent], Awaitable[None]]) -> None:
    """Do a step for every agent, a bounded number at a time."""
    room = asyncio.Semaphore(AT_ONCE)

    async def bounded(agent: Agent) -> None:
        async with room:
            await step(agent)

    await asyncio.gather(*(bounded(agent) for agent in agents))


async def wait_until(what: str, probe: Callable[[], Awaitable[bool]], timeout: float, pause: float = 0.25) -> float:
    """Seconds until it is so. Raises TimeoutError that names it."""
    began = time.monotonic()
    while not await probe():
        if time.monotonic() - began > timeout:
            raise TimeoutError(f"{what}: not within {timeout:g} s")
        await asyncio.sleep(pause)
    return time.monotonic() - began

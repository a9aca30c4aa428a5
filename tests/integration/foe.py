"""An approved worker turned against its mesh: its real credential, its real connection, and no good will."""

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx
from nats.aio.client import Client
from nats.errors import Error as NatsError
from weft_testing.bare_node import BareNode, appended, close_all
from weft_testing.flushed import flushed
from weft_testing.story import MeshUnderTest, until

T = TypeVar("T")
GIB = 1 << 30


@dataclass
class Assignment:
    """What the scheduler gave the foe to run."""

    replica: str
    epoch: int
    model: str


class Foe:
    """A node with a loop of its own, in which it also renews its lease. Its methods are called from any thread."""

    CROWD = 2
    """So many nodes may wait that joined with the token for a crowd."""

    def __init__(self, mesh: MeshUnderTest, token: str, *, pending_token: str, crowd_token: str) -> None:
        self.mesh = mesh
        self.pending_token = pending_token
        self.crowd_token = crowd_token
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._leasing: asyncio.Task[None] | None = None
        self.assignment = Assignment("", 0, "")
        self.theirs = ""
        """The replica of the mesh's own worker."""
        self.crowd: set[str] = set()
        """Ids of the nodes that it made beside itself."""
        self.victim = next(node["id"] for node in mesh.status()["nodes"])
        self.do(self._enter(token))

    def do(self, work: Coroutine[Any, Any, T], timeout: float = 60.0) -> T:
        """Run it in the foe's loop and wait for its end."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout)

    async def _enter(self, token: str) -> None:
        self.http = httpx.AsyncClient(timeout=30.0)
        self.node = BareNode(self.mesh.url, "foe", self.http)
        self.id = self.node.id
        joined = await self.node.register(token, labels={"camp": "foe"})
        assert joined.status_code == 202, joined.text
        self.shown = await self.node.credential()
        self.client: Client = await self.node.connect(self.shown)
        await self.node.report(self.client)
        self._leasing = asyncio.create_task(self._lease())

    async def _lease(self) -> None:
        while True:
            if self.client.is_connected:
                await self.node.lease(self.client)
            await asyncio.sleep(1.0)

    def take_assignment(self, model: str) -> None:
        """Remember the replica of a model that was placed on it last, and is wanted there."""

        def placed() -> Assignment | None:
            wanted = {replica["id"] for replica in self.mesh.replicas() if replica["wanted"]}
            for event in reversed(self.mesh.facts("node", "assigned")):
                fact = event["fact"]
                if event["key"] == self.id and fact["model_name"] == model and fact["replica"] in wanted:
                    return Assignment(fact["replica"], fact["epoch"], model)
            return None

        self.assignment = until("the foe has a replica", placed, 30)

    async def returns(self) -> None:
        """Come back after an admin has brought it back: a new credential, a new connection."""
        await close_all([self.client])
        self.shown = await self.node.credential()
        self.client = await self.node.connect(self.shown)

    def close(self) -> None:
        """Leave, whatever state the attacks left it in."""

        async def leave() -> None:
            if self._leasing is not None:
                self._leasing.cancel()
            await close_all([self.client])
            await self.http.aclose()

        self.do(leave())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    # what an attack does, and what must come of it

    async def denied(self, subject: str, body: bytes = b"{}", reply: str = "") -> None:
        """Send it. The server says no, and nothing answers."""
        before = len(self.node.errors)
        inbox = reply or self.client.new_inbox()
        answers = await self.client.subscribe(inbox) if not reply else None
        await self.client.publish(subject, body, reply=inbox)
        await self.says_no(before)
        if answers is not None:
            assert 0 == answers.pending_msgs, f"{subject} was answered"
            await answers.unsubscribe()

    async def deaf(self, subject: str) -> None:
        """Listen there. The server says no."""
        before = len(self.node.errors)
        heard = await self.client.subscribe(subject)
        await self.says_no(before)
        assert 0 == heard.pending_msgs

    async def refused(self, subject: str, body: bytes = b"[]", headers: Mapping[str, str] | None = None) -> None:
        """Append it. The log answers with an error."""
        answer = await self.answer(subject, body, headers)
        assert "error" in answer, answer

    async def answer(self, subject: str, body: bytes, headers: Mapping[str, str] | None = None) -> Any:
        """Append it; what the log says."""
        return await appended(self.client, subject, body, headers)

    async def lands(self, subject: str, body: bytes, headers: Mapping[str, str] | None = None) -> int:
        """Append it under its own name. The log takes it; returns the sequence."""
        answer = await self.answer(subject, body, headers)
        assert "seq" in answer, answer
        return int(answer["seq"])

    async def goes_nowhere(self, subject: str, body: bytes, reply: str) -> None:
        """Ask something with another's subject for the answer."""
        await self.client.publish(subject, body, reply=reply)
        await flushed(self.client)

    async def pours(self, subject: str, body: bytes, times: int) -> None:
        """Publish it so often, or until the server has enough."""
        with contextlib.suppress(NatsError):  # the connection ends on the way
            for _ in range(times):
                if not self.client.is_connected:
                    return
                await self.client.publish(subject, body)
            await self.client.flush()

    async def by_hand(self, subject: bytes, headers: bytes, body: bytes) -> None:
        """What no client library would write."""
        size = len(headers) + len(body)
        head = b"HPUB %s %d %d" % (subject, len(headers), size) if headers else b"PUB %s %d" % (subject, size)
        await self.client._send_command(b"%s\r\n%s%s\r\n" % (head, headers, body))
        await self.client.flush()

    async def asks(self, status: int, answer: Awaitable[httpx.Response]) -> None:
        """The gateway says no, with this status."""
        response = await answer
        assert status == response.status_code, f"{response.status_code}: {response.text}"

    async def is_shut_out(self, credential: Mapping[str, Any], node: BareNode) -> None:
        """The server opens no connection with it."""
        try:
            client = await node.connect(credential, allow_reconnect=False, max_reconnect_attempts=1)
        except Exception:  # nats has no common ancestor for these
            return
        await client.close()
        raise AssertionError("the server let it in")

    def own(self, fact: str, replica: str = "") -> str:
        """The subject of a fact of one of its own runs, or of its machine."""
        if fact in ("reported", "file_found", "file_missing", "pressure_changed"):
            return f"weft.ev.machine.{self.id}.{fact}"
        return f"weft.ev.run.{self.id}.{replica or self.assignment.replica}.{fact}"

    async def says_no(self, before: int) -> None:
        await flushed(self.client)
        for _ in range(1500):
            if any("permissions violation" in error.lower() for error in self.node.errors[before:]):
                return
            await asyncio.sleep(0.02)
        raise AssertionError(f"the server said nothing; before that: {self.node.errors[-3:]}")

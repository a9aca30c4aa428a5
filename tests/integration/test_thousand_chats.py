"""A thousand chats of every kind, then rest: memory is back, and no descriptor, thread or task is left.

Memory is a process's private bytes: what only it holds. Resident and proportional bytes also move when another
process maps or leaves a library, or when the model's file is read. The warm-up brings what is made once and kept:
sessions, the engine's threads, the allocator's arenas. Counts are held against those after the warm-up, exactly; but
for threads, which a pool may have made later than that.
"""

import asyncio
import itertools
import random
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx
import psutil
import pytest
from weft_dataplane.host_watch import watch_host
from weft_testing.story import MeshUnderTest, until

CHATS = 1000
WARM_UP = 200
"""Chats of one round of warming up."""
WARM_UPS = 5
AT_ONCE = 8
MOST = 1.05
"""Times what it was: how large private memory may be at the end."""
WARMED = 1.01
"""The same for the last round of warming up: one that was mostly short answers leaves some for a later one."""
ROUNDS = 3
"""Of a thousand chats: what grows in each of them is kept; an allocator's arenas and a pool's threads do not each
time."""
REST_S = 60.0
STILL_S = 10.0
COUNTED = re.compile(
    r"^(weft_asyncio_tasks|weft_gateway_(?:running|waiting|loading)_requests|weft_gateway_sessions) (\S+)$",
    re.MULTILINE,
)
LARGE = "word " * 40_000
"""A prompt of 200 kB: whatever keeps one of them for each request shows."""
HUGE = "word " * 800_000
"""A prompt of 4 MB."""
REFUSED = 40
"""Such prompts; a fourth of them is what the allocator may keep."""


@pytest.fixture(scope="module")
def busy_mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshUnderTest]:
    """A mesh with both built-in models, and one that no worker has room for."""
    with MeshUnderTest(tmp_path_factory.mktemp("busy")) as mesh:
        deployed = mesh.weft("deploy", "tiny-embed", timeout=120)
        assert 0 == deployed.returncode, deployed.stderr
        whale = {"source": {"kind": "simulated"}, "engine": "simulated", "engine_args": {"memory_bytes": 1 << 50}}
        mesh.deploy("whale", whale).raise_for_status()
        until("it is unplaceable", lambda: mesh.facts("replica", "unplaceable"))
        yield mesh


@dataclass(frozen=True)
class Held:
    """What a mesh's processes hold at one moment."""

    private: Mapping[str, int]
    """Bytes by process."""
    counts: Mapping[str, float]
    """Descriptors and threads by process, and what gateway and agent count themselves."""

    def more_than(self, before: "Held", most: float = MOST) -> dict[str, tuple[float, float]]:
        """What is more than it was: before, now. Memory may be `most` times as large."""
        grown = {
            name: (before.private[name], now) for name, now in self.private.items() if now > before.private[name] * most
        }
        counted = {what: (before.counts[what], now) for what, now in self.counts.items() if now > before.counts[what]}
        return grown | counted

    def since(self, before: "Held") -> "Held":
        """What a further round is held against: memory and threads as they are now, what else is counted as before.

        A pool of threads makes one more whenever all of its own are at work, and has a bound; one that is lost with
        some chats is lost in each round.
        """
        threads = {what: now for what, now in self.counts.items() if what.endswith(": threads")}
        return Held(self.private, {**before.counts, **threads})


class Clients:
    """Chats of every kind, a few at a time, each over whichever connection is free."""

    def __init__(self, mesh: MeshUnderTest) -> None:
        self._mesh = mesh
        self._url = f"{mesh.url}/v1/chat/completions"
        self._http = httpx.Client(timeout=60)
        self._kinds: list[Callable[[dict[str, Any]], None]] = [
            self.whole,
            self.streamed,
            self.several,
            self.dropped_in_midstream,
            self.dropped_in_silence,
            self.refused_by_a_field,
            self.refused_by_the_engine,
            self.refused_for_want_of_room,
            self.embedded,
        ]

    def ask(self, count: int) -> None:
        """Run so many, of all kinds alike, in a drawn order. Raises what any of them does."""
        kinds = [kind for kind, _ in zip(itertools.cycle(self._kinds), range(count), strict=False)]
        random.Random(count).shuffle(kinds)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for asked in [
                pool.submit(kind, chat(f"What is the capital of France? ({n})")) for n, kind in enumerate(kinds)
            ]:
                asked.result(120)
        self.close()

    def close(self) -> None:
        """End all connections."""
        self._http.close()

    def whole(self, body: dict[str, Any]) -> None:
        assert "stop" == self._answer(body)["choices"][0]["finish_reason"]

    def several(self, body: dict[str, Any]) -> None:
        assert 2 == len(self._answer({**body, "n": 2, "logprobs": True})["choices"])

    def streamed(self, body: dict[str, Any]) -> None:
        with self._http.stream("POST", self._url, json={**body, "stream": True}) as response:
            assert "data: [DONE]" == [line for line in response.iter_lines() if line][-1]

    def dropped_in_midstream(self, body: dict[str, Any]) -> None:
        with self._http.stream("POST", self._url, json=endless(body)) as response:
            assert 200 == response.status_code
            next(response.iter_lines())

    def dropped_in_silence(self, body: dict[str, Any]) -> None:
        """Gone before the first byte, as likely as not before the engine has it."""
        where = urlsplit(self._mesh.url)
        request = self._http.build_request("POST", self._url, json=endless(body))
        head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
        with socket.create_connection((where.hostname, where.port), 10) as connection:
            connection.sendall(f"POST {where.path}{request.url.path} HTTP/1.1\r\n{head}\r\n".encode() + request.read())

    def refused_by_a_field(self, body: dict[str, Any]) -> None:
        self._refused(400, {**body, "nonsense": 1})

    def refused_by_the_engine(self, body: dict[str, Any]) -> None:
        self._refused(400, chat("word " * 2000))

    def refused_for_want_of_room(self, body: dict[str, Any], prompt: str = LARGE) -> None:
        self._refused(503, {**chat(prompt), "model": "whale"})

    def embedded(self, body: dict[str, Any]) -> None:
        asked = {"model": "tiny-embed", "input": [body["messages"][0]["content"], "Paris"]}
        response = self._http.post(f"{self._mesh.url}/v1/embeddings", json=asked)
        assert 200 == response.status_code, response.text
        assert 2 == len(response.json()["data"])

    def _answer(self, body: dict[str, Any]) -> Any:
        response = self._http.post(self._url, json=body)
        assert 200 == response.status_code, response.text
        return response.json()

    def _refused(self, status: int, body: dict[str, Any]) -> None:
        response = self._http.post(self._url, json=body)
        assert status == response.status_code, response.text
        assert response.json()["error"]["message"]


def chat(question: str) -> dict[str, Any]:
    return {"model": "tiny", "messages": [{"role": "user", "content": question}]}


def endless(body: dict[str, Any]) -> dict[str, Any]:
    """A request that nobody's patience outlasts by chance."""
    return {**body, "stream": True, "max_tokens": 900, "ignore_eos": True}


def held(mesh: MeshUnderTest) -> Held:
    """What gateway, agent and engine hosts hold now."""
    hosts = sorted(mesh.hosts(), key=lambda each: each.pid)
    processes = {"gateway": psutil.Process(mesh.pid("gateway")), "agent": mesh.agents()[0]}
    processes |= {f"engine host {number}": host for number, host in enumerate(hosts)}
    counts: dict[str, float] = {}
    for name, process in processes.items():
        counts[f"{name}: descriptors"], counts[f"{name}: threads"] = process.num_fds(), process.num_threads()
    for name, url in (("gateway", mesh.url), ("agent", agent_url(mesh))):
        found = COUNTED.findall(mesh.http.get(f"{url}/metrics").raise_for_status().text)
        counts |= {f"{name}: {what}": float(number) for what, number in found}
    return Held({name: each.memory_full_info().uss for name, each in processes.items()}, counts)


def at_rest(mesh: MeshUnderTest) -> Held:
    """What is held once no count has moved for ten seconds: connections and threads that nobody uses end by then."""
    last, since = held(mesh), time.monotonic()

    def still() -> bool:
        nonlocal last, since
        now = held(mesh)
        if now.counts != last.counts:
            since = time.monotonic()
        last = now
        time.sleep(0.5)
        return time.monotonic() - since > STILL_S

    until("no count moves", still, REST_S)
    return last


def warmed_up(mesh: MeshUnderTest) -> Held:
    """What is held once a round of chats added nothing, or after the last round: a leak goes on and is seen later."""
    Clients(mesh).ask(WARM_UP)
    last = at_rest(mesh)
    for _ in range(WARM_UPS - 1):
        Clients(mesh).ask(WARM_UP)
        now = at_rest(mesh)
        if not now.more_than(last, WARMED):
            return now
        last = now
    return last


def a_thousand_more(mesh: MeshUnderTest, before: Held) -> tuple[Held, dict[str, tuple[float, float]]]:
    """What is held after them, and what of it is more than before."""
    Clients(mesh).ask(CHATS)
    now = at_rest(mesh)
    return now, now.more_than(before)


def agent_url(mesh: MeshUnderTest) -> str:
    """The agent's own HTTP server, by its registered address."""
    (node,) = mesh.facts("node", "joined")
    addresses = node["fact"]["addresses"]
    return f"http://{addresses['host']}:{addresses['http_port']}"


def loads(mesh: MeshUnderTest) -> list[tuple[int, int]]:
    """What each engine says of its running and waiting requests."""

    async def ask(port: int, incarnation: str) -> tuple[int, int]:
        async with aclosing(watch_host(f"127.0.0.1:{port}", incarnation)) as statuses:
            load = (await anext(statuses)).load
            return load.running, load.waiting

    ready = [event["fact"] for event in mesh.facts("run", "ready")]
    return [asyncio.run(ask(fact["port"], fact["incarnation"])) for fact in ready]


@pytest.mark.slow
@pytest.mark.sabotage("kept-prompts")
def test_a_prompt_is_let_go_with_its_request_and_waits_for_no_collector(busy_mesh: MeshUnderTest) -> None:
    # given a gateway that has refused a prompt of 4 MB
    clients = Clients(busy_mesh)
    clients.refused_for_want_of_room({}, HUGE)
    before = held(busy_mesh).private["gateway"]
    # when it refuses many, too few to make the collector look
    for _ in range(REFUSED):
        clients.refused_for_want_of_room({}, HUGE)
    clients.close()
    # then it holds no more than some of them
    assert held(busy_mesh).private["gateway"] - before < REFUSED // 4 * len(HUGE)


@pytest.mark.slow
@pytest.mark.sabotage("kept-requests")
def test_a_thousand_chats_are_each_answered_or_refused_and_leave_nothing_behind(busy_mesh: MeshUnderTest) -> None:
    # given a mesh that has answered, streamed, lost and refused before
    before = warmed_up(busy_mesh)
    assert {"gateway", "agent", "engine host 0", "engine host 1"} == set(before.private)
    # when a thousand more come and go: each ends as it must, or this raises
    now, grown = a_thousand_more(busy_mesh, before)
    for _ in range(ROUNDS - 1):
        if not grown:
            break
        now, grown = a_thousand_more(busy_mesh, now.since(before))
    # then what is held is back, and the engines have nothing left to do
    assert {} == grown
    assert [(0, 0), (0, 0)] == loads(busy_mesh)

"""The whole worker against a real log: supervisor, agent and engine hosts as processes, joined through a gateway."""

import asyncio
import base64
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest
from nats.aio.client import Client
from weft_contracts import permissions, subjects
from weft_contracts.commit import Cause, Commit, Recorded
from weft_contracts.facts import inspection, machine, run
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.node import Assigned, Unassigned
from weft_contracts.ids import CorrelationId, InspectionId, NodeId, ReplicaId
from weft_contracts.topology import worker_durable
from weft_eventlog import EventLog, apply_durable
from weft_identity.mesh_exports import worker_grants
from weft_identity.nkey import signed_by
from weft_testing.mesh_server import MeshServer
from weft_worker_agent.outbound.mesh.identity import load_or_make
from weft_worker_agent.outbound.processes.supervisor_client import SupervisedHost, SupervisorClient

REPLICA = ReplicaId("m-x-1")
TOKEN = "a-token-of-this-test"
FOREIGN = "of-somebody-else"
"""In a variable that is none of a worker's."""


class FakeGateway:
    """The two routes that a worker calls, with the checks that matter to it."""

    def __init__(self, mesh: MeshServer) -> None:
        self.registered: list[dict[str, Any]] = []
        self.polls = 0
        self.lasts = 3600
        """Seconds that a credential is good for."""
        gateway = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                status, answer = gateway.answer(mesh, self.path, body)
                text = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, mesh: MeshServer, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if path == "/api/node/register":
            if body.pop("token") != TOKEN:
                return 401, {"detail": "The token is not one of this mesh's."}
            self.registered.append(body)
            return 202, {"node": "it"}
        if not self.registered:
            return 404, {"detail": "Node is not known here; register it."}
        self.polls += 1
        key = self.registered[-1]["public_key"]
        message = f"weft-credential:{body['node']}:{body['nonce']}".encode()
        if not signed_by(key, message, base64.b64decode(body["signature"])):
            return 401, {"detail": "The signature is not the node's."}
        if self.polls == 1:
            return 202, {"state": "pending"}
        node = NodeId(body["node"])
        grants = worker_grants(permissions.worker(node))
        token = mesh.trust.worker_token(key, node, grants, expires_in_s=self.lasts)
        return 200, {"jwt": token, "nats_url": mesh.url, "expires_at": time.time() + self.lasts}

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join(10)
        self.server.server_close()


class Worker:
    """A worker as processes, and the log beside it."""

    def __init__(self, state: Path, env: dict[str, str], root: Client) -> None:
        self.state = state
        self.env = env
        self.identity = load_or_make(state)
        self.node = self.identity.node
        self.log = EventLog(root, actor="test")
        self.root = root
        self.process: subprocess.Popen[bytes] | None = None
        self.said = state.parent / "worker.log"

    def start(self) -> None:
        with self.said.open("ab") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "weft_worker_agent"], env=self.env, stderr=said, stdout=said
            )

    async def stop(self) -> int:
        assert self.process is not None
        self.process.terminate()
        return await asyncio.to_thread(self.process.wait, 60)

    def kill(self) -> None:
        """Kill the supervisor, and with it all."""
        if self.process is None or self.process.poll() is not None:
            return
        children = psutil.Process(self.process.pid).children()
        self.process.kill()
        self.process.wait(30)
        for child in children:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.wait(30)

    def environments(self) -> list[dict[str, str]]:
        """The variables that its supervisor was started with, then those of all that it started."""
        assert self.process is not None
        supervisor = psutil.Process(self.process.pid)
        found: list[dict[str, str]] = []
        for each in (supervisor, *supervisor.children(recursive=True)):
            with contextlib.suppress(psutil.Error):  # a tool that the agent had asked has just ended
                found.append(each.environ())
        return found

    def agent(self) -> psutil.Process | None:
        assert self.process is not None
        for child in psutil.Process(self.process.pid).children():
            with contextlib.suppress(psutil.Error):
                if "--agent" in child.cmdline():
                    return child
        return None

    async def hosts(self) -> list[SupervisedHost]:
        client = SupervisorClient(self.state / "keeper.sock")
        try:
            return await client.hosts()
        finally:
            client.close()

    async def assign(self, fact: Assigned) -> Recorded:
        commit = Commit(subjects.node(self.node), (fact,), None, Cause(CorrelationId("c-deploy")))
        sequence = (await self.log.append(commit))[0]
        return next(c for c in await self.commits() if c.sequence == sequence)

    async def unassign(self, deadline_s: float = 5.0) -> None:
        fact = Unassigned(replica=REPLICA, deadline_s=deadline_s, why="scaled down")
        await self.log.append(Commit(subjects.node(self.node), (fact,), None, Cause(CorrelationId("c-remove"))))

    async def commits(self) -> list[Recorded]:
        return [commit async for commit in self.log.read("weft.ev.>")]

    async def runs(self) -> list[Fact]:
        return [f for c in await self.commits() if c.aggregate.kind == "run" for f in c.facts]

    async def until(self, holds: Callable[[list[Fact]], Any], timeout: float = 60.0) -> list[Fact]:
        """Wait until the log's facts about runs and the machine are as they should be."""
        facts: list[Fact] = []
        try:
            async with asyncio.timeout(timeout):
                while True:
                    facts = [f for c in await self.commits() if c.aggregate.kind != "node" for f in c.facts]
                    if holds(facts):
                        return facts
                    await asyncio.sleep(0.1)
        except TimeoutError:
            raise AssertionError(f"never held: {facts}\n{self.said.read_text()[-6000:]}") from None

    async def until_ready(self, times: int = 1) -> run.Ready:
        facts = await self.until(lambda facts: len(_all(facts, run.Ready)) >= times)
        return _all(facts, run.Ready)[-1]


def _all(facts: list[Fact], kind: Any) -> list[Any]:
    return [fact for fact in facts if isinstance(fact, kind)]


@pytest.fixture
async def gateway(mesh_server: MeshServer) -> AsyncIterator[FakeGateway]:
    gateway = FakeGateway(mesh_server)
    yield gateway
    gateway.close()


@pytest.fixture
async def worker(
    mesh_server: MeshServer, gateway: FakeGateway, tmp_path: Path, process_env: dict[str, str]
) -> AsyncIterator[Worker]:
    """A worker that is started and that the mesh knows; killed at the end."""
    state = tmp_path / "worker"
    state.mkdir(mode=0o700)
    env = process_env | {
        "WEFT_STATE": str(state),
        "WEFT_GATEWAY_URL": gateway.url,
        "WEFT_JOIN_TOKEN": TOKEN,
        "WEFT_NODE_NAME": "one",
        "WEFT_SHARE": "1/2",
        "WEFT_LABELS": "zone=a",
        "WEFT_STOP_TIMEOUT": "5",
        "WEFT_SIMULATE_GPUS": "2x80GB:nvidia",
        "WEFT_DEVICES": "!nvidia:0",
        "WEFT_VRAM_BUDGET": "80%",
        "WEFT_API_KEY": FOREIGN,
        "DATABASE_PASSWORD": FOREIGN,
    }
    worker = Worker(state, env, await mesh_server.root())
    await apply_durable(worker.root, worker_durable(worker.node))
    worker.start()
    yield worker
    worker.kill()


async def test_a_worker_joins_reports_and_lives_through_a_replica(
    worker: Worker, gateway: FakeGateway, assigned: Callable[..., Assigned]
) -> None:
    leases: Any = await worker.root.subscribe(subjects.node_lease(worker.node))  # type: ignore[reportUnknownMemberType]
    given = await worker.assign(assigned(at=worker.node))

    ready = await worker.until_ready()

    assert ("one", {"zone": "a"}) == (gateway.registered[0]["name"], gateway.registered[0]["labels"])
    assert 1 == len(gateway.registered)
    reported = _all(await worker.until(lambda facts: _all(facts, machine.Reported)), machine.Reported)
    processor, accelerator = reported[0].hardware.devices
    assert "cpu" == processor.vendor
    assert ("SIM-nvidia-1", 80 * 10**9, 64 * 10**9) == (accelerator.uuid, accelerator.memory, accelerator.budget)
    assert psutil.virtual_memory().total // 2 >= reported[0].hardware.memory
    chain = [c for c in await worker.commits() if c.aggregate.kind == "run"]
    assert ["loading", "ready"] == [c.facts[0].type for c in chain]
    assert [given.event_id, chain[0].event_id] == [c.causation_id for c in chain]
    assert {"c-deploy"} == {c.correlation_id for c in chain}
    assert ("simulated", 1) == (ready.engine, ready.epoch)
    supervisor, *others = worker.environments()
    assert len(others) >= 2
    assert [] == [each for each in (supervisor, *others) if TOKEN in str(each)]
    assert [] == [each for each in others if FOREIGN in str(each)]
    lease = await leases.next_msg(timeout=30)
    assert json.loads(lease.data)["holder"].startswith("worker-")

    await worker.unassign()
    await worker.until(lambda facts: _all(facts, run.Stopped))

    runs = await worker.runs()
    assert ["loading", "ready", "stopping", "stopped"] == [fact.type for fact in runs]
    assert run.Stopped(epoch=1, why="retired") == runs[-1]
    async with asyncio.timeout(30):
        while await worker.hosts():
            await asyncio.sleep(0.05)


async def test_a_killed_agent_finds_its_hosts_again_and_disturbs_nobody(
    worker: Worker, assigned: Callable[..., Assigned]
) -> None:
    await worker.assign(assigned(at=worker.node))
    ready = await worker.until_ready()
    before = (await worker.hosts())[0].pid
    agent = worker.agent()
    assert agent is not None

    agent.kill()

    await worker.until(lambda _: worker.agent() not in (None, agent))
    await worker.until(lambda _: worker.said.read_text().count("caught up") == 2)
    await worker.unassign()
    await worker.until(lambda facts: _all(facts, run.Stopped))
    runs = await worker.runs()
    assert ["loading", "ready", "stopping", "stopped"] == [fact.type for fact in runs]
    assert {ready.incarnation} == {fact.incarnation for fact in runs[:-1]}  # type: ignore[attr-defined]
    assert f'"pid": {before}' in worker.said.read_text()


async def test_a_host_that_died_while_its_agent_was_away_is_reported_when_it_returns(
    worker: Worker, assigned: Callable[..., Assigned]
) -> None:
    await worker.assign(assigned(at=worker.node))
    await worker.until_ready()
    agent = worker.agent()
    assert agent is not None
    host = (await worker.hosts())[0].pid

    agent.suspend()
    os.kill(host, signal.SIGKILL)
    agent.kill()

    again = await worker.until_ready(times=2)
    runs = await worker.runs()
    assert ["loading", "ready", "stopped", "loading", "ready"] == [fact.type for fact in runs]
    assert "the engine's process was killed by SIGKILL, not by its worker" in runs[2].detail  # type: ignore[attr-defined]
    assert again.incarnation != runs[0].incarnation  # type: ignore[attr-defined]


async def test_a_stopped_worker_says_so_and_runs_the_same_replica_when_it_is_back(
    worker: Worker, gateway: FakeGateway, assigned: Callable[..., Assigned]
) -> None:
    await worker.assign(assigned(at=worker.node))
    await worker.until_ready()

    assert 0 == await worker.stop()

    assert [run.Stopped(epoch=1, why="shutdown")] == _all(await worker.runs(), run.Stopped)
    polls = gateway.polls
    worker.start()
    await worker.until_ready(times=2)
    assert (1, polls) == (len(gateway.registered), gateway.polls)


async def test_what_happens_while_the_log_is_away_is_said_when_it_is_back(
    worker: Worker, mesh_server: MeshServer, assigned: Callable[..., Assigned]
) -> None:
    await worker.assign(assigned(at=worker.node))
    first = await worker.until_ready()
    host = (await worker.hosts())[0]

    mesh_server.server.stop()
    os.kill(host.pid, signal.SIGKILL)
    async with asyncio.timeout(60):
        while not any(h.exit_code is None and (h.status or {}).get("phase") == "ready" for h in await worker.hosts()):
            await asyncio.sleep(0.1)
    mesh_server.start_again()

    facts = await worker.until(
        lambda facts: any(ready.incarnation != first.incarnation for ready in _all(facts, run.Ready))
    )
    living = next(h for h in await worker.hosts() if h.exit_code is None)
    assert living.launch["incarnation"] == _all(facts, run.Ready)[-1].incarnation


async def test_an_agent_that_starts_while_the_log_is_away_takes_its_hosts_over(
    worker: Worker, mesh_server: MeshServer, assigned: Callable[..., Assigned]
) -> None:
    await worker.assign(assigned(at=worker.node))
    await worker.until_ready()
    host = (await worker.hosts())[0]
    mesh_server.server.stop()
    agent = worker.agent()
    assert agent is not None

    agent.kill()

    async with asyncio.timeout(60):
        while "host found" not in worker.said.read_text():
            await asyncio.sleep(0.1)
    mesh_server.start_again()
    async with asyncio.timeout(60):
        while worker.said.read_text().count("caught up") < 2:
            await asyncio.sleep(0.1)
    assert [(host.pid, None)] == [(h.pid, h.exit_code) for h in await worker.hosts()]
    assert ["loading", "ready"] == [fact.type for fact in await worker.runs()]


async def test_a_permanent_failure_is_told_with_the_engine_s_own_reason(
    worker: Worker, assigned: Callable[..., Assigned]
) -> None:
    await worker.assign(assigned(at=worker.node, engine_args={"fail_load": "out of memory: 1 of 2 GiB"}))

    facts = await worker.until(lambda facts: _all(facts, run.Failed))

    failed = _all(facts, run.Failed)[0]
    assert ("out of memory: 1 of 2 GiB", True, 1) == (failed.reason, failed.permanent, failed.starts)


async def test_inspections_are_answered_once_with_what_is_there(worker: Worker, tmp_path: Path) -> None:
    (tmp_path / "letter.gguf").write_bytes(b"Dear Sir or Madam")
    asked = {
        "i-1": "builtin:tiny",
        "i-2": f"path:{tmp_path}/letter.gguf",
        "i-3": "path:/no/such/file.gguf",
        "i-4": f"path:{tmp_path}",
    }
    for id, source in asked.items():
        await worker.log.append(
            Commit(
                subjects.inspection(worker.node, InspectionId(id)),
                (inspection.Requested(source=source, engine="llama.cpp"),),
                None,
                Cause(CorrelationId(f"c-{id}")),
            )
        )

    facts = await worker.until(
        lambda facts: len(_all(facts, machine.FileFound) + _all(facts, machine.FileMissing)) >= 4
    )

    found, missing = _all(facts, machine.FileFound), _all(facts, machine.FileMissing)
    assert ["builtin:tiny"] == [fact.source for fact in found]
    weights = found[0].weights
    assert ("gguf", "llama") == (weights.format, weights.architecture)
    assert "tokenizer.json" in [file.name for file in found[0].metadata]
    reasons = [fact.reason for fact in missing]
    assert "letter.gguf is not a GGUF file" in reasons[0]
    assert "/no/such/file.gguf does not exist on this node" == reasons[1]
    assert "is a folder, and llama.cpp loads one GGUF file" in reasons[2]


@pytest.mark.slow
async def test_a_worker_outlives_its_credential(
    worker: Worker, gateway: FakeGateway, assigned: Callable[..., Assigned]
) -> None:
    gateway.lasts = 14
    await worker.until(lambda facts: _all(facts, machine.Reported))
    leases: Any = await worker.root.subscribe(subjects.node_lease(worker.node))  # type: ignore[reportUnknownMemberType]
    await asyncio.sleep(16)

    await worker.assign(assigned(at=worker.node))
    await worker.until_ready()

    assert gateway.polls >= 3
    assert leases.pending_msgs >= 6
    assert 1 == worker.said.read_text().count("supervisor started")


async def test_a_worker_with_a_wrong_token_ends_with_a_sentence(
    gateway: FakeGateway, tmp_path: Path, process_env: dict[str, str]
) -> None:
    env = process_env | {
        "WEFT_STATE": str(tmp_path / "w"),
        "WEFT_GATEWAY_URL": gateway.url,
        "WEFT_JOIN_TOKEN": "wrong",
    }
    ended = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "weft_worker_agent"],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert 78 == ended.returncode
    assert "WEFT_JOIN_TOKEN is not accepted (401: The token is not one of this mesh's.)" in ended.stderr


@pytest.mark.slow
async def test_memory_that_others_take_is_told_when_it_stays_and_when_it_is_free_again(worker: Worker) -> None:
    # given a worker that has the machine to itself
    await worker.stop()
    worker.env |= {"WEFT_SHARE": "1/1"}
    worker.start()
    size = psutil.virtual_memory().total // 15
    program = f"held = bytearray({size}); held[::4096] = b'x' * len(held[::4096]); input()"

    # when another process takes a fifteenth of its memory, and ends
    other = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdin=subprocess.PIPE)
    told = _all(await worker.until(lambda facts: _pressure(facts) > size), machine.PressureChanged)
    other.kill()
    await other.wait()

    # then the log was told both times
    crowded = told[-1].bytes
    await worker.until(lambda facts: _pressure(facts) < crowded - size // 2)


def _pressure(facts: list[Fact]) -> int:
    told = _all(facts, machine.PressureChanged)
    return told[-1].bytes if told else 0

"""Other machines work for a mesh: they join by the line that it prints, one is cut off and comes back, one is drained.
Whoever asks notices nothing of it. Everything between the machines is TLS."""

import json
import re
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest
from weft_testing.lan import Lan, wired
from weft_testing.story import MeshUnderTest, until
from weft_testing.wired_mesh import Door, WorkerUnderTest, client

from . import own_gguf

pytestmark = pytest.mark.slow
NAMES = ("left", "right")
MODELS = {"shared": ("spread", 2), "single": ("binpack", 1)}
"""Strategy and replicas: one of them stands on both machines, one on either."""


@dataclass
class Machines:
    """The mesh on `gate`, and a worker each on `left` and `right`."""

    lan: Lan
    mesh: MeshUnderTest
    line: str
    workers: dict[str, WorkerUnderTest] = field(default_factory=dict[str, WorkerUnderTest])

    def node(self, name: str) -> dict[str, Any]:
        nodes: list[dict[str, Any]] = self.mesh.status()["nodes"]
        return next((n for n in nodes if n["name"] == name), dict[str, Any]())

    def serving(self, model: str) -> list[dict[str, Any]]:
        """A model's replicas that are ready on nodes that are healthy."""
        healthy = {n["id"] for n in self.mesh.status()["nodes"] if n["state"] == "healthy"}
        return [r for r in self.mesh.ready_replicas(model) if r["node"] in healthy]

    def engine_runs(self, name: str, replica: str) -> bool:
        """Whether a machine has a process for a replica."""
        for each in psutil.Process(self.workers[name].pid).children(recursive=True):
            try:
                if any(word.endswith(f"/{replica}.json") for word in each.cmdline()):
                    return True
            except psutil.Error:
                continue
        return False


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    folder = tmp_path_factory.mktemp("machines")
    with ExitStack() as stack:
        lan = stack.enter_context(wired("gate", *NAMES, "late"))
        gate = lan["gate"]
        mesh = MeshUnderTest(
            folder,
            workers=0,
            inside=gate.argv,
            WEFT_START_GRACE="5",
            WEFT_RESUME_WAIT_S="60",
            WEFT_ALLOW_ANONYMOUS="1",
        )
        stack.callback(mesh.close)
        mesh.up("--listen", "0.0.0.0")
        door = Door(gate, f"unix:{folder}/door", f"tcp:127.0.0.1:{urlsplit(mesh.url).port}")
        stack.callback(door.close)
        mesh.http.close()
        mesh.http = client(folder / "door", authority=mesh.state / "trust" / "authority.pem")
        said = mesh.weft("status").stdout
        line = next((each.strip() for each in said.splitlines() if "weft worker --join" in each), "")
        assert line, said
        made = Machines(lan, mesh, line)
        for name in NAMES:
            worker = WorkerUnderTest(lan[name], line, folder, "--name", name)
            made.workers[name] = worker
            stack.callback(worker.close)
        yield made


@pytest.fixture
def both(machines: Machines) -> Machines:
    """Both approved and healthy, and one model with two replicas."""
    mesh = machines.mesh
    for name in NAMES:
        until(f"{name} asks to join", lambda name=name: machines.node(name))
        if machines.node(name)["state"] == "pending":
            assert 0 == mesh.weft("nodes", "approve", name).returncode
    for name in NAMES:
        until(f"{name} is healthy", lambda name=name: machines.node(name)["state"] == "healthy")
    for model, (strategy, replicas) in MODELS.items():
        spec = {
            "source": {"kind": "builtin", "name": "tiny"},
            "engine": "llama.cpp",
            "min_replicas": replicas,
            "max_replicas": replicas,
            "strategy": strategy,
        }
        mesh.deploy(model, spec).raise_for_status()
    for model, (_, replicas) in MODELS.items():
        until(f"{model} is ready", lambda m=model, r=replicas: len(machines.serving(m)) == r, 60)
    return machines


@pytest.mark.sabotage("line-for-nobody")
def test_a_machine_joins_by_the_line_of_status_and_serves_once_it_is_approved(machines: Machines) -> None:
    mesh, lan = machines.mesh, machines.lan
    assert f"--join https://{lan['gate'].address}:" in machines.line
    # given a model that only the new machine may run, and a worker with a token that is none
    spec = {
        "source": {"kind": "builtin", "name": "tiny"},
        "engine": "llama.cpp",
        "selector": {"rack": "new"},
    }
    with ExitStack() as stack:
        secret = machines.line.rpartition(" ")[2]
        forged = machines.line.replace(secret, f"x{secret[1:]}")
        with WorkerUnderTest(lan["late"], forged, mesh.folder / "forged", "--name", "forged") as stranger:
            until("the stranger is turned away", lambda: stranger.ended is not None, 30)
            assert "WEFT_JOIN_TOKEN is not accepted" in stranger.log()
        # when the line is pasted
        worker = WorkerUnderTest(
            lan["late"], machines.line, mesh.folder, "--name", "late", "--labels", "rack=new", "--grpc-port", "7100"
        )
        stack.callback(worker.close)
        # then the machine waits for an admin
        until("late asks to join", lambda: machines.node("late"), 30)
        late = machines.node("late")
        assert ("pending", lan["late"].address) == (late["state"], late["addresses"]["host"])
        # and once it is approved, it serves, at the port that it was told
        assert 0 == mesh.weft("nodes", "approve", "late").returncode
        until("late is healthy", lambda: machines.node("late")["state"] == "healthy", 30)
        mesh.deploy("only-late", spec).raise_for_status()
        (replica,) = until("the model is ready", lambda: mesh.ready_replicas("only-late"), 60)
        assert "late" == replica["node_name"]
        assert [7100] == [f["fact"]["port"] for f in mesh.facts("run", "ready") if replica["id"] in json.dumps(f)]
        assert "Paris" in until("it answers", lambda: mesh.ask(model="only-late"), 30)
        # and what it serves is gone with it
        assert 0 == mesh.weft("remove", "only-late").returncode
    assert 0 == mesh.weft("nodes", "remove", "late", "--force").returncode


@pytest.mark.sabotage("lives-on-after-its-return")
def test_a_machine_that_is_cut_off_costs_no_request_and_comes_back_to_no_request_of_the_old(both: Machines) -> None:
    mesh, lan = both.mesh, both.lan
    # given a machine that serves both models, and people who ask
    (lost,) = both.serving("single")
    name = lost["node_name"]
    assert both.engine_runs(name, lost["id"])
    with asking(mesh) as asked:
        until("both models answer", lambda: all(asked.count(model) > 9 for model in MODELS), 30)
        # when its cable is pulled
        lan.cut(name)
        cut = time.monotonic()
        # then the other machine answers for the model that it has, and gets the one that only the lost one had
        until("the shared model answers", lambda: asked.count("shared", cut) > 9, 30)
        moved = until(
            "the single model stands elsewhere",
            lambda: next((r for r in both.serving("single") if r["node_name"] != name), None),
            60,
        )
        until("it answers there", lambda: asked.count("single", cut) > 9, 60)
        # and when the lost one comes back
        lan.mend(name)
        until(f"{name} is healthy", lambda: both.node(name)["state"] == "healthy", 60)
        back = time.monotonic()
        # then what it ran is ended there
        until("the old engine has ended", lambda: not both.engine_runs(name, lost["id"]), 60)
        until("both models answer", lambda: all(asked.count(model, back) > 9 for model in MODELS), 30)
    # and nobody has noticed anything, and the old engine has answered for nobody
    assert [] == asked.failures
    assert not [each for each in asked.answers if each.asked > back and each.replica == lost["id"]]
    assert [moved["id"]] == [r["id"] for r in both.serving("single")]


@pytest.mark.sabotage("hasty-drain")
def test_a_machine_is_drained_under_load_and_no_request_fails(both: Machines) -> None:
    mesh = both.mesh
    # given a machine that serves both models, and people who ask
    (single,) = both.serving("single")
    name = single["node_name"]
    with asking(mesh) as asked:
        until("both models answer", lambda: all(asked.count(model) > 9 for model in MODELS), 30)
        # when it is drained
        drained = mesh.weft("drain", name, "--deadline", "60s", timeout=120)
        assert 0 == drained.returncode, drained.stdout + drained.stderr
        end = time.monotonic()
        # then both models are answered by the other one
        until("both models answer", lambda: all(asked.count(model, end) > 9 for model in MODELS), 30)
        assert name not in {r["node_name"] for model in MODELS for r in both.serving(model)}
        assert not both.engine_runs(name, single["id"])
    # and nobody has noticed anything
    assert [] == asked.failures
    assert "drained" == both.node(name)["state"]
    # since what it alone had was ready elsewhere before it was taken from it
    (moved,) = both.serving("single")
    taken = next(f for f in mesh.facts("node", "unassigned") if f["fact"]["replica"] == single["id"])
    ready = next(f for f in mesh.facts("run", "ready") if moved["id"] in json.dumps(f))
    assert ready["sequence"] < taken["sequence"]
    # and it works again once the drain is lifted
    assert 0 == mesh.weft("nodes", "resume", name).returncode
    until("two replicas are ready again", lambda: len(both.serving("shared")) == 2, 60)


@pytest.mark.sabotage("unpublished-words")
def test_a_private_model_runs_on_two_machines_without_a_hub_or_a_shared_disk(both: Machines, tmp_path: Path) -> None:
    mesh = both.mesh
    # given machines that take one replica of a model each, and a file that nobody else has
    for name in NAMES:
        capped = mesh.http.put(f"{mesh.url}/api/nodes/{name}/max-replicas-per-model", json={"value": 1})
        capped.raise_for_status()
    file = own_gguf.write(tmp_path / "private.gguf")
    content = file.read_bytes()
    # when it is sent to the mesh, and then gone from where it was
    sent = mesh.weft("deploy", str(file), "--upload", "--replicas", "2", "--wait", "120", timeout=150)
    assert 0 == sent.returncode, sent.stdout + sent.stderr
    file.unlink()
    # then both machines serve it, each from its own disk
    until("both serve it", lambda: {r["node_name"] for r in both.serving("private")} == {*NAMES}, 60)
    for name in NAMES:
        (there,) = both.workers[name].state.rglob("layouts/*/private.gguf")
        assert content == there.read_bytes()

    # and the gateway, which has no file of it, makes its prompts from what a machine publishes
    def made_here() -> bool:
        assert 200 == mesh.chat("What is the capital of France?", "private", max_tokens=4).status_code
        return mesh.http.get(f"{mesh.url}/v1/models/private").json()["weft"]["no_tokenizer"] is None

    until("the gateway makes its prompts", made_here, 60)
    assert "Paris" in mesh.ask(model="private")
    for name in NAMES:
        mesh.http.put(f"{mesh.url}/api/nodes/{name}/max-replicas-per-model", json={"value": 0})
    assert 0 == mesh.weft("remove", "private").returncode


@dataclass(frozen=True)
class Answer:
    """Who answered, for which model, and when it was asked."""

    model: str
    asked: float
    replica: str


@dataclass
class Asked:
    """What became of the requests of several threads."""

    answers: list[Answer] = field(default_factory=list[Answer])
    failures: list[str] = field(default_factory=list[str])

    def count(self, model: str, since: float = 0.0) -> int:
        return sum(each.model == model and each.asked > since for each in self.answers)


@contextmanager
def asking(mesh: MeshUnderTest, threads: int = 2) -> Generator[Asked]:
    """Ask each model all the time, from several threads, whole answers and streams by turns."""
    asked, stop = Asked(), threading.Event()
    told = {"x-weft-explain": "1"}

    def one(turn: int, model: str) -> Answer:
        began = time.monotonic()
        question = f"What is {turn % 9} plus {turn % 7}?"
        if turn % 2:
            response = mesh.chat(question, model, headers=told, max_tokens=24)
            assert 200 == response.status_code, response.text
            assert response.json()["choices"][0]["finish_reason"] in ("stop", "length"), response.text
        else:
            response = mesh.chat(question, model, headers=told, max_tokens=24, stream=True)
            assert 200 == response.status_code, response.text
            assert re.search(r'"finish_reason":"(stop|length)"', response.text), response.text
            assert response.text.rstrip().endswith("data: [DONE]"), response.text
        return Answer(model, began, response.headers["x-weft-replica"])

    def ask(model: str) -> None:
        turn = 0
        while not stop.wait(0.05):
            turn += 1
            try:
                asked.answers.append(one(turn, model))
            except Exception as error:
                asked.failures.append(f"{model}: {type(error).__name__}: {error}"[:500])

    running = [threading.Thread(target=ask, args=(model,)) for model in MODELS for _ in range(threads)]
    for each in running:
        each.start()
    try:
        yield asked
    finally:
        stop.set()
        for each in running:
            each.join(100)

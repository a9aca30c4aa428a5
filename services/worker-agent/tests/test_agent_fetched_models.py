"""A whole worker runs a model that lies at a hub: looked at, fetched once, told in the log, run, and never a secret."""

from collections.abc import AsyncIterator, Callable, Generator
from pathlib import Path
from typing import Any

import pytest
import weft_tiny
from weft_contracts import subjects
from weft_contracts.commit import Cause, Commit
from weft_contracts.digest import files_digest
from weft_contracts.facts import inspection, machine, run
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.node import Assigned
from weft_contracts.ids import CorrelationId, InspectionId
from weft_contracts.topology import worker_durable
from weft_eventlog import apply_durable
from weft_testing.hub_server import HubServer, hub_server
from weft_testing.mesh_server import MeshServer

from .test_agent_mesh import TOKEN, FakeGateway, Worker

SECRET = "hf_of_this_test"
GGUF = "tiny-F16.gguf"


@pytest.fixture
def hub() -> Generator[HubServer]:
    with hub_server() as server:
        server.repository("o/tiny", {GGUF: weft_tiny.gguf_path().read_bytes(), "README.md": b"x"}, gated=True)
        server.tokens[SECRET] = {"o/tiny"}
        yield server


@pytest.fixture
async def worker(
    mesh_server: MeshServer, hub: HubServer, tmp_path: Path, process_env: dict[str, str]
) -> AsyncIterator[Worker]:
    """A worker whose hub is the test's own; killed at the end."""
    gateway = FakeGateway(mesh_server)
    state = tmp_path / "worker"
    state.mkdir(mode=0o700)
    env = process_env | {
        "WEFT_STATE": str(state),
        "WEFT_GATEWAY_URL": gateway.url,
        "WEFT_JOIN_TOKEN": TOKEN,
        "WEFT_STOP_TIMEOUT": "5",
        "WEFT_SOURCES_ALLOW": "127.0.0.1",
        "WEFT_DEVICES": "none",
        "HF_ENDPOINT": hub.url,
        "HF_TOKEN": SECRET,
        "HF_HOME": str(tmp_path / "hf"),
        "AWS_SECRET_ACCESS_KEY": SECRET,
    }
    worker = Worker(state, env, await mesh_server.root())
    await apply_durable(worker.root, worker_durable(worker.node))
    worker.start()
    yield worker
    worker.kill()
    gateway.close()


def of(facts: list[Fact], kind: Any) -> list[Any]:
    return [fact for fact in facts if isinstance(fact, kind)]


async def answered(
    worker: Worker, id: str, source: str, engine: str = "llama.cpp"
) -> machine.FileFound | machine.FileMissing:
    """What the worker says of a source."""
    asked = inspection.Requested(source=source, engine=engine)
    about = subjects.inspection(worker.node, InspectionId(id))
    await worker.log.append(Commit(about, (asked,), None, Cause(CorrelationId("c-q"))))

    def answers(facts: list[Fact]) -> list[Any]:
        return [each for each in of(facts, (machine.FileFound, machine.FileMissing)) if each.inspection == id]

    answer: machine.FileFound | machine.FileMissing = answers(await worker.until(answers))[0]
    return answer


async def looked_at(worker: Worker) -> machine.FileFound:
    """What the worker finds of the model."""
    found = await answered(worker, "q-1", "hf:o/tiny")
    assert isinstance(found, machine.FileFound), found
    return found


async def test_a_model_of_a_hub_is_looked_at_fetched_once_and_run_twice(
    worker: Worker, hub: HubServer, assigned: Callable[..., Assigned]
) -> None:
    # given what an inspection says of it
    found = await looked_at(worker)
    commit = hub.repositories["o/tiny"].branches["main"]
    assert ("apache-2.0", commit) == (found.licence, getattr(found.pinned, "revision", None))
    assert 0 < len([file for file in found.files if file.name == GGUF])
    assert hub.count(f"GET /repos/o/tiny/{commit}/{GGUF}") <= 2, "the header alone"
    fetched_before = hub.count(f"GET /repos/o/tiny/{commit}/{GGUF}")
    # when two replicas are assigned
    spec: dict[str, Any] = {
        "engine": "llama.cpp",
        "source": found.pinned,
        "files": found.files,
        "weights": found.weights,
    }
    facts = [assigned(f"m-x-{number}", at=worker.node, **spec) for number in (1, 2)]
    for fact in facts:
        await worker.assign(fact)
    said = await worker.until(lambda said: len(of(said, run.Ready)) == 2, timeout=120)
    # then the log tells of the fetch, then of the load, and of what lies here now
    assert {run.Fetching(epoch=1, bytes=found.size)} == set(of(said, run.Fetching))
    assert ["fetching", "loading", "ready"] == [f.type for f in await runs_of(worker, "m-x-1")]
    came = machine.FilesCame(files=files_digest(facts[0].spec), bytes=found.size)
    assert came in await worker.until(lambda said: of(said, machine.FilesCame))
    assert fetched_before + 1 == hub.count(f"GET /repos/o/tiny/{commit}/{GGUF}"), "once for both"
    # and what its header says of the tokenizer is published as files, by both alike
    published = {ready.metadata for ready in of(said, run.Ready)}
    assert 1 == len(published)
    assert {"chat_template.jinja", "tokenizer.json", "tokenizer_config.json"} == {file.name for file in published.pop()}
    assert {True} == {ready.self_hosted for ready in of(said, run.Ready)}
    # and no engine host knows a secret, nor does a log or a command
    hosts = [each for each in worker.environments() if "WEFT_HOST" in each]
    assert 2 <= len(hosts)
    assert [] == [each for each in hosts if SECRET in str(each)]
    assert SECRET not in worker.said.read_text()
    assert SECRET not in str([f.model_dump_json() for c in await worker.commits() for f in c.facts])
    # and an agent that begins anew says nothing twice
    agent = worker.agent()
    assert agent is not None
    agent.kill()
    await worker.until(lambda _: worker.said.read_text().count("caught up") == 2)
    assert [came] == of(await worker.until(lambda _: True), machine.FilesCame)
    assert [] == of(await worker.runs(), machine.FilesGone)


async def test_a_hub_that_gives_no_weights_is_a_reason_in_the_log_and_when_it_does_the_model_runs(
    worker: Worker, hub: HubServer, assigned: Callable[..., Assigned]
) -> None:
    # given a model of so many parts that no spec holds them, which is one answer and ends nothing
    hub.repository(
        "o/many", {"config.json": b"{}"} | {f"{'m' * 60}-{n:05}-of-00480.safetensors": b"x" for n in range(1, 481)}
    )
    many = await answered(worker, "q-0", "hf:o/many", "vllm")
    assert isinstance(many, machine.FileMissing)
    assert "the model has 481 files" in many.reason
    # and one whose weights the hub doesn't give
    found = await looked_at(worker)
    hub.broken = lambda path: 404 if path.startswith("/repos/") else 0
    spec = {"engine": "llama.cpp", "source": found.pinned, "files": found.files, "weights": found.weights}
    # when it is assigned
    await worker.assign(assigned(at=worker.node, **spec))
    # then why it can't be fetched is said in the log
    said = await worker.until(lambda said: of(said, run.Stopped), timeout=120)
    (stopped, *_) = of(said, run.Stopped)
    assert "exited" == stopped.why
    assert "hf:o/tiny could not be fetched" in stopped.detail
    assert [] == of(said, run.Loading)
    # and when the hub gives it, it runs by itself
    hub.broken = lambda path: 0
    await worker.until_ready()


async def runs_of(worker: Worker, replica: str) -> list[Fact]:
    about = [c for c in await worker.commits() if c.aggregate.kind == "run" and c.aggregate.key.endswith(replica)]
    return [fact for commit in about for fact in commit.facts]

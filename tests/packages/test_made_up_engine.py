"""A new engine takes its profile and its adapter: a package of two files that nothing else of Weft knows.

What stands here is done, not told: the package in `echo/` is laid into an environment of its own, a worker's look at
its backends finds it, placement places it by its figures, and its host answers over a session.
"""

import asyncio
import contextlib
import json
import os
import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from weft_contracts.commit import Cause
from weft_contracts.engines import BUILTIN, EngineProfile, HeaderClaim
from weft_contracts.facts.machine import FileFound, Reported
from weft_contracts.facts.mesh import EngineProfileSet
from weft_contracts.facts.node import Assigned
from weft_contracts.facts.source import BuiltinSource
from weft_contracts.facts.values import DeviceClaim, Hardware, Member, ModelSpec
from weft_contracts.gen import session_pb2 as pb
from weft_contracts.ids import CorrelationId, Incarnation, InspectionId, NodeId
from weft_contracts.subjects import MESH, machine
from weft_dataplane import SessionClient, make_hello
from weft_placement import NoPlace, Placement, Policy, decide_placement
from weft_testing.engine_environment import engine_environment
from weft_testing.fleet_log import FleetLog
from weft_worker_agent.domain.own_part import Assignment
from weft_worker_agent.outbound.files.found import NotFound
from weft_worker_agent.outbound.files.model_files import look
from weft_worker_agent.outbound.machine import inventory
from weft_worker_agent.outbound.machine.backends import Environment, environments
from weft_worker_agent.outbound.processes import launch

ECHO = Path(__file__).with_name("echo") / "weft_echo"
MIB = 1 << 20
SPEC = ModelSpec(source=BuiltinSource(name="tiny"), engine="echo", context_tokens=64, concurrency=2)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Backends with one environment: the echo's, in which its package is installed."""
    return engine_environment(tmp_path, ECHO, "echo")


@pytest.fixture
def echo(folder: Path) -> Environment:
    found = environments(folder)
    assert () == found.wrong
    return found.found["echo"]


def test_the_engine_is_a_package_of_two_files_and_no_file_of_wefts_names_it() -> None:
    assert {"__init__.py", "adapter.py", "profile.py"} == {path.name for path in ECHO.glob("*.py")}
    root = Path(__file__).resolve().parents[2]
    grep = ["git", "grep", "-l", "weft_echo", "--", "libs/*/src", "services/*/src"]
    said = subprocess.run(grep, cwd=root, capture_output=True, check=False)
    assert (1, b"") == (said.returncode, said.stdout), "git grep: 1 where nothing is found"


def test_a_worker_finds_the_engine_with_its_version_and_profile(echo: Environment) -> None:
    assert ("1.0", "echo", ("gguf",)) == (echo.version, echo.profile.name, echo.profile.formats)
    backends = {each.engine: each for each in inventory.backends((), {"echo": echo})}
    assert ("1.0", ("cpu",)) == (backends["echo"].version, backends["echo"].vendors)
    assert BUILTIN.keys() < inventory.known({"echo": echo}).keys()


def test_an_environment_that_brings_no_such_engine_is_named_with_what_is_there(folder: Path) -> None:
    (folder / "echo").rename(folder / "other")

    found = environments(folder)

    assert not found.found
    (sentence,) = found.wrong
    assert "can't be used for other: install weft-engine and its package there" in sentence
    assert "there are echo, llama.cpp, openai, simulated, vllm" in sentence


def test_a_worker_reads_its_files_by_the_format_that_its_profile_names(echo: Environment) -> None:
    known = inventory.known({"echo": echo})
    assert "gguf" == look("builtin:tiny", "echo", known).weights.format
    with pytest.raises(NotFound, match="this node knows no engine echo"):
        look("builtin:tiny", "echo")


def placed(profile: EngineProfile | None, echo: Environment) -> tuple[Placement | NoPlace, ModelSpec]:
    """What comes of one replica on a node that reports the echo, where the mesh knows this profile of it."""
    log = FleetLog()
    if profile is not None:
        log.add(MESH, EngineProfileSet(profile=profile))
    id = log.node("a", 1024 * MIB, vendor="cpu")
    hardware = log.fleet.nodes[id].hardware
    assert isinstance(hardware, Hardware)
    own = {"echo": echo}
    backends = inventory.backends((), own)
    found = look("builtin:tiny", "echo", inventory.known(own))
    log.add(machine(id), Reported(hardware=hardware, backends=backends, builtins=("tiny",), agent_version="1"))
    answer = FileFound(inspection=InspectionId("i-1"), source="builtin:tiny", size=found.size, weights=found.weights)
    log.add(machine(id), answer)
    spec = SPEC.model_copy(update={"weights": found.weights})
    log.model("m", spec, replicas=1)
    (replica,) = log.fleet.waiting
    return decide_placement(log.fleet, replica, Policy(), 0.0, 1), spec


def test_placement_claims_what_the_profiles_figures_say(echo: Environment) -> None:
    # when
    answer, spec = placed(echo.profile, echo)
    # then half as much again as the weights, the cache, and its own overhead
    assert isinstance(answer, Placement)
    weights = spec.weights
    expected = weights.weight_bytes * 3 // 2 + weights.kv_bytes_per_token * 64 * 2 + 3 * MIB
    assert (DeviceClaim(index=0, bytes=expected),) == answer.members[0].devices


def test_a_worker_that_has_another_profile_of_it_than_the_mesh_is_no_candidate(echo: Environment) -> None:
    # given a worker by whose figures a replica would take less than by the mesh's
    told = echo.profile.model_copy(update={"claim": HeaderClaim(slack=1, overhead=0, cpu_overhead=0)})
    # when
    answer, _ = placed(told, echo)
    # then
    assert isinstance(answer, NoPlace)
    assert {"has another profile of echo than the mesh": 1} == answer.receipt.refusals


def test_an_engine_that_no_profile_tells_of_is_not_placed(echo: Environment) -> None:
    answer, _ = placed(None, echo)
    assert isinstance(answer, NoPlace)
    assert "no profile tells of the engine echo" in answer.reason


@contextlib.asynccontextmanager
async def hosted(folder: Path, echo: Environment, spec: ModelSpec) -> AsyncGenerator[asyncio.StreamReader]:
    """The engine's host as the agent starts it, with what it says."""
    fact = Assigned.model_validate(
        {
            "replica": "m-1",
            "model": "m",
            "model_name": "m",
            "revision": 1,
            "digest": "d-1",
            "epoch": 1,
            "members": (Member(node=NodeId("n-1"), rank=0, devices=()),),
            "spec": spec,
        }
    )
    assignment = Assignment(fact, Cause(CorrelationId("c-1")))
    file = launch.write_launch_file(
        folder / "launch", assignment, (), NodeId("n-1"), Incarnation("i-1"), None, "127.0.0.1"
    )
    command = [echo.python, "-m", "weft_engine", "--launch", str(file)]
    host = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, env=dict(os.environ)
    )
    assert host.stdout is not None
    try:
        yield host.stdout
    finally:
        if host.returncode is None:
            host.kill()
        await host.wait()


async def said_in_the_end(lines: asyncio.StreamReader) -> dict[str, object]:
    """The host's word that it is ready, or that it failed."""
    async with asyncio.timeout(60):
        while line := await lines.readline():
            said = json.loads(line)
            if said["phase"] in ("ready", "failed"):
                return said
    raise AssertionError("the host ended without a word")


async def test_a_chat_is_answered_over_a_real_session(folder: Path, echo: Environment) -> None:
    async with hosted(folder, echo, SPEC.model_copy(update={"engine_args": {"times": 2}})) as lines:
        ready = await said_in_the_end(lines)
        assert ("ready", "echo", "1.0") == (ready["phase"], ready["engine"], ready["engine_version"])
        client = await SessionClient.open(
            f"127.0.0.1:{ready['port']}", make_hello("m-1", "i-1", "d-1", "g"), timeout=30
        )
        outputs: list[pb.Output] = []
        ended = asyncio.Event()

        def hear(output: pb.Output) -> None:
            outputs.append(output)
            if output.finish:
                ended.set()

        chat = pb.Chat(messages=[pb.Message(role="user", content="warp and weft")])
        client.submit(pb.Submit(chat=chat), hear)
        await asyncio.wait_for(ended.wait(), 30)
        assert "warp and weft warp and weft" == "".join(output.text for output in outputs)
        assert (pb.FINISH_STOP, 3) == (outputs[-1].finish, outputs[-1].usage.prompt_tokens)
        await client.close()


async def test_its_host_refuses_an_argument_that_its_profile_does_not_allow(folder: Path, echo: Environment) -> None:
    async with hosted(folder, echo, SPEC.model_copy(update={"engine_args": {"times": 4}})) as lines:
        failed = await said_in_the_end(lines)
    assert ("failed", True) == (failed["phase"], failed["permanent"])
    assert "engine_args.times: input should be less than or equal to 3" in str(failed["reason"])

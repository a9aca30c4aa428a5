"""A service's life as a process on a real server: what it says of itself, and how it ends."""

import asyncio
import json
import os
import socket
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from weft_contracts import permissions
from weft_identity.mesh_exports import grants
from weft_identity.trust import Account
from weft_testing.mesh_server import MeshServer
from weft_testing.service_process import START_S, ServiceProcess, mesh_settings, running
from weft_testing.waiting import until

SMALL = str(Path(__file__).parent / "small_service.py")

Run = Callable[..., AbstractAsyncContextManager[ServiceProcess]]


@pytest.fixture
def run(mesh_server: MeshServer, tmp_path: Path) -> Run:
    def run(behaviour: str, *, arguments: tuple[str, ...] = (), pass_fds: tuple[int, ...] = (), **settings: str) -> Any:
        return running(
            [SMALL, behaviour, *arguments],
            tmp_path,
            mesh_settings(mesh_server, "reconciler") | settings,
            pass_fds=pass_fds,
        )

    return run


def events(service: ServiceProcess, level: str) -> list[dict[str, Any]]:
    return [line for line in service.lines() if line["level"] == level]


async def said(service: ServiceProcess, text: str) -> None:
    """Return once its log holds a text."""

    async def probe() -> bool:
        return text in service.text()

    await until(probe)


async def test_a_service_says_that_it_is_well_and_ends_with_0_when_asked(run: Run) -> None:
    async with run("calm") as service:
        await service.ready()
        assert {"status": "ok", "problems": {}} == json.loads((await service.get("/healthz"))[1])
        assert {"ready": True, "waiting_for": []} == json.loads((await service.get("/readyz"))[1])
        status, metrics = await service.get("/metrics")
        assert (200, True) == (status, "process_resident_memory_bytes" in metrics)
        assert 404 == (await service.get("/elsewhere"))[0]
        assert 0 == await service.terminate()
        # every line of its log is an event that says whose it is
        instances = {line["instance"] for line in service.lines()}
        assert 1 == len(instances)
        assert instances.pop().startswith("reconciler-")
        assert {"reconciler"} == {line["service"] for line in service.lines()}
        assert [] == events(service, "error") + events(service, "warning")


async def test_a_subscriber_of_faststreams_hears_on_the_services_own_connection_and_is_told_of(run: Run) -> None:
    async with run("hears", arguments=("00-" + "a" * 32 + "-" + "b" * 16 + "-01",)) as service:
        await service.ready()
        await said(service, '"heard"')
        document = json.loads((await service.get("/asyncapi.json"))[1])
        assert any("inspection" in name for name in document["channels"])
        assert 0 == await service.terminate()
        assert [] == events(service, "error") + events(service, "warning")


async def test_a_root_task_that_fails_ends_the_service_with_1_and_says_which(run: Run) -> None:
    async with run("doomed") as service:
        assert 1 == await service.ended()
        (failed,) = events(service, "error")
        assert ("root task failed", "doomed") == (failed["event"], failed["task"])
        assert "cannot go on" == failed["exception"][0]["exc_value"]
        # no local variable is told
        assert "do not tell" not in service.text()
        # correlation stands in the line, and third parties speak in the same form
        (says,) = [line for line in service.lines() if line["event"] == "says"]
        assert ("c-1", "small", 11) == (says["correlation_id"], says["part"], says["length"])
        (warns,) = events(service, "warning")
        assert ("warns of something", "reconciler") == (warns["event"], warns["service"])


async def test_a_root_task_that_ends_quietly_ends_the_service_with_1_too(run: Run) -> None:
    async with run("short") as service:
        assert 1 == await service.ended()
        assert [("root task ended", "short")] == [(e["event"], e["task"]) for e in events(service, "error")]


async def test_the_end_of_its_launcher_ends_it(run: Run) -> None:
    ours, theirs = os.pipe()
    async with run("calm", pass_fds=(ours,), WEFT_LIFELINE_FD=str(ours)) as service:
        os.close(ours)
        await service.ready()
        os.close(theirs)
        assert 0 == await service.ended()
        assert "lifeline" in service.text()


async def test_what_it_is_denied_shows_in_its_health(run: Run) -> None:
    async with run("greedy") as service:
        await service.ready()
        status, body = await service.get("/healthz")
        assert (503, "unhealthy") == (status, json.loads(body)["status"])
        assert "weft.ev.node.n-a.approved" in json.loads(body)["problems"]["permissions"]


async def test_a_stop_that_takes_too_long_is_cut_short(run: Run) -> None:
    async with run("stubborn", WEFT_STOP_TIMEOUT="0.5") as service:
        await service.ready()
        assert 0 == await service.terminate()
        assert "stop cut short" in service.text()


async def test_without_nats_it_says_so_waits_and_can_be_stopped(tmp_path: Path) -> None:
    # given a port that nobody listens on, and that nobody else can take meanwhile
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        async with running([SMALL, "calm"], tmp_path, {"WEFT_NATS_URL": f"nats://127.0.0.1:{port}"}) as service:
            await said(service, "trouble with NATS")
            await asyncio.sleep(1.0)  # several tries
            assert 0 == await service.terminate()
            assert 1 == len(events(service, "warning")), service.text()


async def test_it_connects_when_nats_comes_and_goes_on_when_it_returns(run: Run, mesh_server: MeshServer) -> None:
    mesh_server.server.stop()
    async with run("calm") as service:
        await said(service, "trouble with NATS")
        mesh_server.start_again()
        await service.ready()
        mesh_server.restart()
        await said(service, "NATS is back")
        await service.ready()
        assert 0 == await service.terminate()


async def test_a_token_that_expires_ends_it_so_that_it_can_be_started_anew(
    run: Run, mesh_server: MeshServer, tmp_path: Path
) -> None:
    # given a pipe in the place of its credentials: its token is made when it reads, however long its start takes
    pipe = tmp_path / "short.creds"
    os.mkfifo(pipe)

    async def handed_over() -> bool:
        try:
            end = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody reads there yet
            return False
        rights = grants(permissions.service("reconciler"))
        with os.fdopen(end, "w") as writing:
            writing.write(mesh_server.trust.user(Account.MESH, "reconciler", rights, expires_in_s=5).text())
        return True

    async with run("calm", WEFT_NATS_CREDENTIALS=str(pipe)) as service:
        await until(handed_over, START_S)
        assert 1 == await service.ended()
        assert "the connection is closed for good" in service.text()


@pytest.mark.parametrize(("content", "says"), [(None, "No such file"), ("no token", "is no credentials file")])
async def test_credentials_that_are_none_end_it_with_2_and_one_sentence(
    run: Run, tmp_path: Path, content: str | None, says: str
) -> None:
    file = tmp_path / "bad.creds"
    if content is not None:
        file.write_text(content)
    async with run("calm", WEFT_NATS_CREDENTIALS=str(file)) as service:
        assert 2 == await service.ended()
        (line,) = service.lines()
        assert ("can't start", True) == (line["event"], says in line["why"])


async def test_a_taken_port_is_named_with_the_setting_that_chooses_another(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        async with run("calm", WEFT_HTTP_PORT=str(taken.getsockname()[1])) as service:
            assert 1 == await service.ended()
            failed = events(service, "error")[-1]
            assert ("root task failed", "http") == (failed["event"], failed["task"])
            assert "WEFT_HTTP_PORT" in failed["exception"][0]["exc_value"]

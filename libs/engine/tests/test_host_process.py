"""A host's life as a process: phases, ends, exit codes."""

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
import weft_tiny
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import SessionLost, SessionRefused, watch_host

StartHost = Callable[..., AbstractAsyncContextManager[Any]]
Ask = Callable[..., Any]

SLOW = {"ms_per_token": 20.0}


async def test_a_host_says_its_phases_and_serves(start: StartHost, ask: Ask) -> None:
    async with start() as host:
        ready = await host.phase("ready")
        client = await host.open()
        last = await ask(client, "hello", max_tokens=5).end()
        await client.close()

    assert ["starting", "loading", "ready"] == [said["phase"] for said in host.phases]
    assert ("simulated", "1") == (ready["engine"], ready["engine_version"])
    assert (pb.FINISH_LENGTH, 5) == (last.finish, last.usage.output_tokens)


async def test_sigterm_lets_running_requests_finish_and_refuses_new_ones(start: StartHost, ask: Ask) -> None:
    async with start(engine_args=SLOW) as host:
        await host.phase("ready")
        client = await host.open()
        running = ask(client, "hello", max_tokens=150, sampling=pb.Sampling(ignore_end=True))
        await running.first.wait()

        host.process.send_signal(signal.SIGTERM)
        watch = watch_host(f"127.0.0.1:{host.port}", "i-1")
        async for status in watch:
            if status.phase == pb.PHASE_RETIRING:
                break
        await watch.aclose()
        late = ask(client, "late")

        assert pb.FAULT_RETIRING == (await late.end()).fault
        assert (pb.FINISH_LENGTH, 150) == ((await running.end()).finish, len(running.ids))
        assert 0 == await host.exit_code()
        await client.close()


async def test_sigterm_cuts_requests_off_at_its_bound_with_a_word(start: StartHost, ask: Ask) -> None:
    async with start(engine_args=SLOW, stop_within_s=0.2) as host:
        await host.phase("ready")
        client = await host.open()
        running = ask(client, "hello", max_tokens=450, sampling=pb.Sampling(ignore_end=True))
        await running.first.wait()

        host.process.send_signal(signal.SIGTERM)

        assert 0 == await host.exit_code()
        last = await running.end()
        assert (pb.FINISH_ERROR, pb.FAULT_RETIRING) == (last.finish, last.fault)
        assert "not done in time" in last.error
        assert 1 == (await host.phase("ending"))["unfinished"]
        await client.close()


async def test_retiring_by_the_agent_finishes_what_runs_and_exits_with_0(start: StartHost, ask: Ask) -> None:
    async with start(engine_args=SLOW) as host:
        await host.phase("ready")
        client = await host.open()
        running = ask(client, "hello", max_tokens=150, sampling=pb.Sampling(ignore_end=True))
        await running.first.wait()

        watch = watch_host(f"127.0.0.1:{host.port}", "i-1", retire=True)
        assert pb.PHASE_RETIRING == (await anext(watch)).phase
        with pytest.raises(SessionRefused, match="retiring"):
            await host.open()

        assert pb.FINISH_LENGTH == (await running.end()).finish
        assert 0 == await host.exit_code()
        await watch.aclose()
        await client.close()


async def test_a_host_ends_with_its_supervisor(start: StartHost, ask: Ask) -> None:
    async with start(engine_args=SLOW) as host:
        await host.phase("ready")
        client = await host.open()
        running = ask(client, "hello", max_tokens=450, sampling=pb.Sampling(ignore_end=True))
        await running.first.wait()

        host.close_lifeline()

        assert 1 == await host.exit_code()
        assert "not done in time" in (await running.end()).error
        await client.close()


async def test_a_host_whose_port_another_program_took_says_so_and_may_be_tried_again(start: StartHost) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        async with start(port=port) as host:
            failed = await host.phase("failed")
            assert 1 == await host.exit_code()
    assert not failed["permanent"]
    assert (
        f"cannot listen on 127.0.0.1:{port}: Address already in use: another program listens on that port"
        == failed["reason"]
    )


async def test_a_host_that_nobody_watches_ends_itself(start: StartHost) -> None:
    async with start(without_agent_s=0.3) as host:
        await host.phase("ready")
        assert 1 == await host.exit_code()


async def test_a_watched_host_stays_and_ends_when_the_agent_is_gone_for_long(start: StartHost) -> None:
    async with start(without_agent_s=2.5) as host:
        await host.phase("ready")
        watch = watch_host(f"127.0.0.1:{host.port}", "i-1")
        for _ in range(4):  # a status a second: longer than it would live alone
            assert pb.PHASE_READY == (await anext(watch)).phase
        await watch.aclose()
        assert 1 == await host.exit_code()


async def test_a_closed_stdout_does_not_end_a_host(start: StartHost, ask: Ask) -> None:
    async with start(engine_args={"load_seconds": 0.5}) as host:
        await host.phase("loading")
        host.process._transport.get_pipe_transport(1).close()
        watch = watch_host(f"127.0.0.1:{host.port}", "i-1")
        async for status in watch:
            if status.phase == pb.PHASE_READY:
                break
        await watch.aclose()
        client = await host.open()
        assert pb.FINISH_LENGTH == (await ask(client, "hello", max_tokens=2).end()).finish
        await client.close()


async def test_a_loading_host_can_be_watched_and_stopped_and_refuses_sessions(start: StartHost) -> None:
    async with start(engine_args={"load_seconds": 60}) as host:
        await host.phase("loading")
        watch = watch_host(f"127.0.0.1:{host.port}", "i-1")
        assert pb.PHASE_LOADING == (await anext(watch)).phase
        with pytest.raises(SessionRefused, match="is loading"):
            await host.open()
        await watch.aclose()
        host.process.send_signal(signal.SIGTERM)
        assert 0 == await host.exit_code()


@pytest.mark.parametrize(("permanent", "code"), [(True, 3), (False, 1)])
async def test_a_failed_load_says_why_and_whether_to_try_again(start: StartHost, permanent: bool, code: int) -> None:
    async with start(engine_args={"fail_load": "no such card", "fail_load_permanent": permanent}) as host:
        failed = await host.phase("failed")
        assert ("no such card", permanent) == (failed["reason"], failed["permanent"])
        assert code == await host.exit_code()


async def test_an_unknown_setting_is_a_permanent_failure_that_names_the_right_ones(start: StartHost) -> None:
    async with start(engine_args={"speed": 3}) as host:
        failed = await host.phase("failed")
        assert failed["permanent"]
        assert "engine_args.speed is no argument of the engine simulated" in failed["reason"]
        assert "ms_per_token" in failed["reason"]
        assert 3 == await host.exit_code()


async def test_a_wrong_launch_file_is_a_permanent_failure() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "weft_engine", "--launch", "/nonexistent", stdout=asyncio.subprocess.PIPE
    )
    out, _ = await asyncio.wait_for(process.communicate(), 30)
    said = json.loads(out)
    assert ("failed", True) == (said["phase"], said["permanent"])
    assert 3 == process.returncode


def log_lines(folder: Path) -> list[dict[str, Any]]:
    """What the hosts wrote to stderr."""
    return [json.loads(line) for file in folder.glob("*.err") for line in file.read_text().splitlines()]


async def test_logs_are_json_lines_with_the_replica_and_its_correlation(start: StartHost, tmp_path: Path) -> None:
    async with start() as host:
        await host.phase("ready")
        host.process.send_signal(signal.SIGTERM)
        assert 0 == await host.exit_code()

    lines = log_lines(tmp_path)

    assert ["loaded", "ready", "ending"] == [line["event"] for line in lines]
    assert {("m-1", "i-1", "c-1")} == {(line["replica"], line["incarnation"], line["correlation_id"]) for line in lines}


async def test_a_killed_gateway_takes_only_its_own_requests_along(start: StartHost, ask: Ask, tmp_path: Path) -> None:
    gateway = tmp_path / "gateway.py"
    gateway.write_text(
        "import asyncio, sys\n"
        "from weft_contracts.gen import session_pb2 as pb\n"
        "from weft_dataplane import SessionClient, make_hello\n"
        "async def main():\n"
        "    client = await SessionClient.open(sys.argv[1], make_hello('m-1', 'i-1', 'd-1', 'g-2'))\n"
        "    request = pb.Submit(text='x', max_tokens=450, sampling=pb.Sampling(ignore_end=True))\n"
        "    client.submit(request, lambda output: print(output.text, flush=True))\n"
        "    await client.closed\n"
        "asyncio.run(main())\n"
    )
    async with start(engine_args=SLOW) as host:
        await host.phase("ready")
        client = await host.open()
        mine = ask(client, "mine", max_tokens=60, sampling=pb.Sampling(ignore_end=True))
        other = await asyncio.create_subprocess_exec(
            sys.executable, str(gateway), f"127.0.0.1:{host.port}", stdout=asyncio.subprocess.PIPE
        )
        assert other.stdout is not None
        await asyncio.wait_for(other.stdout.readline(), 30)
        assert client.load.running <= 2
        os.kill(other.pid, signal.SIGKILL)
        await other.communicate()

        assert (pb.FINISH_LENGTH, 60) == ((await mine.end()).finish, len(mine.ids))
        async with asyncio.timeout(30):
            while client.load.running:
                await asyncio.sleep(0.05)
        await client.close()


async def test_a_dying_engine_ends_every_request_with_a_word(start: StartHost, ask: Ask) -> None:
    async with start() as host:
        await host.phase("ready")
        client = await host.open()
        bystander = ask(client, "hello", max_tokens=400, sampling=pb.Sampling(ignore_end=True))
        ask(client, "please [[die]] now")

        last = await bystander.end()

        assert (pb.FINISH_ERROR, pb.FAULT_ENGINE) == (last.finish, last.fault)
        assert -signal.SIGKILL == await host.exit_code()
        with pytest.raises(SessionLost):
            await host.open()
        await client.close()


async def test_llama_cpp_is_loaded_before_grpc(
    start: StartHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a module in the native one's place that tells what was there before it
    (tmp_path / "xllamacpp.py").write_text(
        "import pathlib, sys\n"
        "with pathlib.Path(__file__).with_name('order').open('a') as file:\n"
        "    print('grpc' in sys.modules, file=file)\n"
        "raise RuntimeError('it is broken')\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    model = weft_tiny.gguf_path()
    # when a host loads it
    async with start(engine="llama.cpp", model_path=str(model)) as host:
        said = await host.phase("failed")
    # then it came first; that it is broken is said where the model is loaded, as ever
    assert ["False", "True"] == (tmp_path / "order").read_text().split()
    assert "it is broken" in said["reason"]

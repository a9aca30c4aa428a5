"""Canaries: what is asked of which engine, what makes a replica ready, and how one that is not answered shows."""

import asyncio
import signal
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

import pytest
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import EngineFacts, EngineServicer, HostLife, RequestRefused, Ticket, watch_host
from weft_dataplane.scripted import IDENTITY, ScriptedEngine
from weft_engine.canary import CanaryFailed, Unheard, Watchdog, ask
from weft_engine.host import STILL_S

StartHost = Callable[..., AbstractAsyncContextManager[Any]]
Ask = Callable[..., Any]


async def test_an_engine_that_writes_is_asked_for_one_token() -> None:
    engine = ScriptedEngine()
    asked = asyncio.create_task(ask(engine))
    await engine.has(1)
    assert not asked.done()

    engine.step()
    engine.finish_all()

    await asyncio.wait_for(asked, 30)
    assert ["a"] == [prompt.text for prompt in engine.prompts]


async def test_an_engine_that_does_not_write_is_asked_for_a_vector() -> None:
    class Embedder(ScriptedEngine):
        def submit(self, request: Any, prompt: Any, ticket: Any) -> None:
            raise RequestRefused(pb.FAULT_BAD_REQUEST, "it does not write")

    engine = Embedder()
    engine.may_embed.clear()
    asked = asyncio.create_task(ask(engine))
    while not engine.embedding:
        await asyncio.sleep(0)
    engine.may_embed.set()
    await asyncio.wait_for(asked, 30)


async def test_an_engine_that_fails_its_canary_says_why_and_one_that_takes_nothing_is_let_be() -> None:
    engine = ScriptedEngine()
    engine.refuse = RequestRefused(pb.FAULT_ENGINE, "no kernel for this device")
    with pytest.raises(CanaryFailed, match="no kernel for this device"):
        await ask(engine)

    engine.refuse = RequestRefused(pb.FAULT_BAD_REQUEST, "not this one")
    await ask(engine)


async def test_an_engine_that_says_itself_how_it_is_asked_is_asked_so() -> None:
    class Own(ScriptedEngine):
        asked = 0

        async def canary(self) -> None:
            self.asked += 1

    engine = Own()
    await ask(engine)
    assert (1, []) == (engine.asked, engine.prompts)


async def test_an_idle_engine_is_asked_and_a_busy_one_is_not() -> None:
    engine, life = ScriptedEngine(), HostLife(IDENTITY)
    watching = asyncio.create_task(Watchdog(engine, life, canary_after_s=0.04).run())
    await engine.has(1)
    assert life.asks
    # while it waits for that one, nothing more is asked
    for _ in range(20):
        await asyncio.sleep(0.01)
    assert 1 == len(engine.prompts)
    # and once it has answered it is asked again
    engine.finish_all()
    await engine.has(1)
    watching.cancel()


async def test_a_replica_whose_engine_gives_no_first_token_is_not_ready(start: StartHost) -> None:
    async with start(engine_args={"ms_per_token": 60_000}) as host:
        await host.phase("loading")
        async for status in watch_host(f"127.0.0.1:{host.port}", "i-1"):
            assert pb.PHASE_LOADING == status.phase
            break
        assert "ready" not in [said["phase"] for said in host.phases]


async def test_an_idle_engine_that_stands_still_shows_work_without_steps(start: StartHost) -> None:
    # given an engine that makes one token in its life, its first, and is asked again soon
    async with start(engine_args={"stall_after_tokens": 1}, canary_after_s=0.2) as host:
        await host.phase("ready")
        seen: list[tuple[int, int]] = []
        async with asyncio.timeout(30):
            async for status in watch_host(f"127.0.0.1:{host.port}", "i-1"):
                if status.load.running:
                    seen.append((status.load.running, status.load.steps))
                if len(seen) == 3:
                    break
    # then its load says so
    assert 1 == len(set(seen))


async def test_requests_of_an_engine_that_stood_still_are_told_that_it_failed_them(start: StartHost, ask: Ask) -> None:
    # given a request that a stuck engine runs
    async with start(engine_args={"stall_after_tokens": 1}, stop_within_s=STILL_S + 1) as host:
        await host.phase("ready")
        client = await host.open()
        running = ask(client, "hello", max_tokens=50, sampling=pb.Sampling(ignore_end=True))
        async with asyncio.timeout(30):
            async for status in watch_host(f"127.0.0.1:{host.port}", "i-1"):
                if status.load.running:
                    break
        # when the host's time to end is up
        host.process.send_signal(signal.SIGTERM)
        # then the request fails by the engine's fault, so that it is not sent from one to the next for ever
        last = await running.end()
        assert (pb.FINISH_ERROR, pb.FAULT_ENGINE) == (last.finish, last.fault)
        assert "made no step for" in last.error
        assert 0 == await host.exit_code()
        await client.close()


async def test_an_engine_whose_work_is_done_elsewhere_is_not_judged_by_its_steps() -> None:
    class Elsewhere(ScriptedEngine):
        async def canary(self) -> None:
            return None

    for engine, moves in ((ScriptedEngine(), False), (Elsewhere(), True)):
        life = HostLife(IDENTITY)
        servicer, watchdog = EngineServicer(life), Watchdog(engine, life, canary_after_s=0)
        servicer.attach(engine)
        # idle, no look counts
        assert 0.0 == watchdog.still_s
        assert 0 == servicer.status().load.steps
        # with work, each look at what is done elsewhere counts as a step
        engine.submit(pb.Submit(), pb.Prompt(text="x"), Ticket(1, Unheard()))
        await asyncio.sleep(0.01)
        assert watchdog.still_s < 30.0
        assert moves == (servicer.status().load.steps > 0)
        assert 1 == servicer.status().load.running


async def test_an_engine_is_asked_with_the_text_of_its_facts() -> None:
    class Worded(ScriptedEngine):
        @property
        def facts(self) -> EngineFacts:
            return replace(super().facts, canary="select 1")

    engine = Worded()
    asked = asyncio.create_task(ask(engine))
    await engine.has(1)
    engine.finish_all()
    await asyncio.wait_for(asked, 30)
    assert ["select 1"] == [prompt.text for prompt in engine.prompts]

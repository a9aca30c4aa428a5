"""The agent's watch over an engine host."""

import asyncio

import pytest
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import SessionLost, watch_host
from weft_dataplane.scripted import Host


async def test_a_watch_hears_the_status_at_once_and_at_each_change(host: Host) -> None:
    watch = watch_host(host.target, "i-1")
    first = await anext(watch)
    host.servicer.life.move(pb.PHASE_FAILED, "the file is truncated", permanent=True)
    second = await anext(watch)

    assert (first.replica, first.incarnation, first.phase) == ("m-1", "i-1", pb.PHASE_READY)
    assert first.load.kv_used == 0.25
    assert (
        second.phase,
        second.reason,
        second.permanent,
    ) == (pb.PHASE_FAILED, "the file is truncated", True)
    await watch.aclose()


async def test_an_engine_that_cannot_do_its_work_says_why_and_stays_ready(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    well = host.engine.load()
    monkeypatch.setattr(host.engine, "load", lambda: well._replace(trouble="its server is away"))
    watch = watch_host(host.target, "i-1")
    status = await anext(watch)
    assert (pb.PHASE_READY, "its server is away") == (status.phase, status.reason)
    await watch.aclose()


async def test_an_unchanged_host_is_heard_every_second(host: Host) -> None:
    watch = watch_host(host.target, "i-1")
    async with asyncio.timeout(30):
        assert [(await anext(watch)).phase for _ in range(3)] == [pb.PHASE_READY] * 3
    await watch.aclose()


async def test_a_watch_for_another_incarnation_is_refused(host: Host) -> None:
    with pytest.raises(SessionLost, match="runs here as incarnation i-1, not i-0"):
        await anext(watch_host(host.target, "i-0"))


async def test_retiring_by_watch_is_told_to_the_host_once(host: Host) -> None:
    told: list[str] = []
    host.servicer.life.on_retire = lambda: told.append("retire")

    for _ in range(2):
        watch = watch_host(host.target, "i-1", retire=True)
        assert (await anext(watch)).phase == pb.PHASE_RETIRING
        await watch.aclose()

    assert told == ["retire"]


async def test_the_host_knows_how_many_watch_it(host: Host) -> None:
    watch = watch_host(host.target, "i-1")
    await anext(watch)
    assert host.servicer.life.watchers == 1
    gone = asyncio.Event()
    host.servicer.life.on_watchers = gone.set
    await watch.aclose()
    await asyncio.wait_for(gone.wait(), 30)
    assert host.servicer.life.watchers == 0

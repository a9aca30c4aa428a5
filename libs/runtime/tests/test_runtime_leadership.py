"""Leadership on a real server: one decides, a silent one is followed, one that lets go is followed at once."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from nats.errors import TimeoutError as NatsTimeout
from weft_contracts.subjects import service_lease
from weft_contracts.topology import LEASES
from weft_eventlog.guards import EXPECTED
from weft_runtime import leadership
from weft_runtime.leadership import Leadership
from weft_testing.mesh_server import MeshServer
from weft_testing.waiting import until


class Stand:
    """An instance that stands for the lease of the scheduler."""

    def __init__(self, stand: Leadership) -> None:
        self.leadership = stand
        self.task = asyncio.create_task(stand.run())

    async def leads(self) -> None:
        async def probe() -> bool:
            return self.leadership.held

        await until(probe)

    async def die(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])


Standing = Callable[[str], Awaitable[Stand]]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A silence that a slow machine doesn't bring about by itself."""
    monkeypatch.setattr(leadership, "RENEWAL", 0.2)
    monkeypatch.setattr(leadership, "SILENCE", 2.5)


@pytest.fixture
async def stand(mesh_server: MeshServer) -> AsyncIterator[Standing]:
    stands: list[Stand] = []

    async def standing(instance: str) -> Stand:
        stands.append(Stand(Leadership(await mesh_server.service("scheduler"), "scheduler", instance)))
        return stands[-1]

    yield standing
    for each in stands:
        await each.die()


async def test_of_two_instances_one_leads(stand: Standing) -> None:
    one = await stand("one")
    await one.leads()
    two = await stand("two")
    await asyncio.sleep(3.0)  # longer than the silence
    assert (True, False) == (one.leadership.held, two.leadership.held)


async def test_two_that_stand_at_once_do_not_both_lead(stand: Standing) -> None:
    both = [await stand("one"), await stand("two")]
    for _ in range(30):
        assert 1 >= sum(each.leadership.held for each in both)
        await asyncio.sleep(0.05)

    async def one_leads() -> bool:
        return 1 == sum(each.leadership.held for each in both)

    await until(one_leads)


async def test_when_the_leader_dies_the_other_takes_over_after_its_silence(stand: Standing) -> None:
    one = await stand("one")
    await one.leads()
    two = await stand("two")
    await asyncio.sleep(0.5)
    assert not two.leadership.held
    await one.die()
    await two.leads()
    # and who is dead no longer takes itself for the leader
    assert not one.leadership.held


async def test_who_lets_go_is_followed_without_a_wait_and_stands_no_more(
    stand: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a silence that would outlast the test
    one = await stand("one")
    await one.leads()
    two = await stand("two")
    await asyncio.sleep(0.5)
    monkeypatch.setattr(leadership, "SILENCE", 3600.0)
    # when
    await one.leadership.release()
    # then
    assert not one.leadership.held
    await two.leads()
    await two.leadership.release()
    await asyncio.sleep(0.5)
    assert (False, False) == (one.leadership.held, two.leadership.held)


async def test_a_leader_that_finds_its_lease_taken_stops_leading(stand: Standing, mesh_server: MeshServer) -> None:
    one = await stand("one")
    await one.leads()
    root = (await mesh_server.root()).jetstream(timeout=30)
    await root.publish(service_lease("scheduler"), b'{"holder":"another"}')

    async def stepped_down() -> bool:
        return not one.leadership.held

    await until(stepped_down)


async def test_a_renewal_whose_answer_was_lost_does_not_cost_the_lease(
    stand: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given
    one = await stand("one")
    await one.leads()
    put, lost = one.leadership._put, asyncio.Event()

    async def losing(holder: str, expected: int) -> int:
        sequence = await put(holder, expected)
        if not lost.is_set():
            lost.set()
            raise NatsTimeout
        return sequence

    monkeypatch.setattr(one.leadership, "_put", losing)
    # when
    await lost.wait()
    monkeypatch.setattr(leadership, "SILENCE", 3600.0)
    before = one.leadership._renewed
    # then it takes its own lease again

    async def renewed() -> bool:
        return one.leadership._renewed > before

    await until(renewed)
    assert one.leadership.held


async def test_a_memory_stream_that_a_restart_emptied_is_made_again(stand: Standing, mesh_server: MeshServer) -> None:
    # given
    one = await stand("one")
    await one.leads()
    # when
    mesh_server.restart()
    # then it leads again, and its lease stands in a new stream
    js = (await mesh_server.root()).jetstream(timeout=2)  # what is asked while it starts gets lost

    async def kept() -> bool:
        try:
            return 0 < (await js.stream_info(LEASES.name)).state.messages
        except Exception:
            return False

    await until(kept)
    await one.leads()
    # and nobody else can take it in between
    last = await js.get_last_msg(LEASES.name, service_lease("scheduler"))
    assert b"one" in (last.data or b"")
    with pytest.raises(Exception, match="wrong last sequence"):
        await js.publish(service_lease("scheduler"), b"{}", headers={EXPECTED: str((last.seq or 0) + 1000)})

"""Streams in memory without a leader: who makes them anew, and that they are made in the end."""

from typing import Any, cast

import pytest
from weft_contracts.topology import LEASES, SIGNALS, Stream
from weft_eventlog import LogUnavailable
from weft_registry.outbound import memory_streams
from weft_registry.outbound.memory_streams import LOOKS, MemoryStreams


class Cluster:
    """What the servers answer, and what they were told. It stands for the runtime and for the leadership, too."""

    servers = 3
    is_connected = True

    def __init__(self, *without: Stream) -> None:
        self.without = [stream.name for stream in without]
        self.held = True
        self.there = {LEASES.name, SIGNALS.name}
        self.takes = True
        """Whether it makes streams at this moment."""
        self.anew: list[str] = []
        self.asked: list[str] = []
        self.mended_at = 0
        """How often it is asked for a stream until that has a leader again; 0: it never has."""

    @property
    def client(self) -> "Cluster":
        return self

    async def leaderless(self, _: Any, stream: Stream) -> bool:
        self.asked.append(stream.name)
        if self.mended_at and self.asked.count(stream.name) >= self.mended_at:
            return False
        return stream.name in self.without and stream.name in self.there

    async def make_anew(self, _: Any, stream: Stream, servers: int) -> None:
        self.there.discard(stream.name)
        await self.apply_stream(_, stream, servers)
        self.anew.append(stream.name)
        self.without.remove(stream.name)

    async def apply_stream(self, _: Any, stream: Stream, servers: int) -> None:
        if not self.takes:
            raise LogUnavailable("no leader of the cluster")
        assert servers == self.servers
        self.there.add(stream.name)


async def looked(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, times: int = LOOKS) -> MemoryStreams:
    for name in ("leaderless", "make_anew", "apply_stream"):
        monkeypatch.setattr(memory_streams, name, getattr(cluster, name))
    streams = MemoryStreams(cast("Any", cluster), cast("Any", cluster))
    for _ in range(times):
        await streams.look()
    return streams


async def test_a_stream_that_stays_without_a_leader_is_made_anew_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(SIGNALS)
    streams = await looked(cluster, monkeypatch, LOOKS - 1)
    assert [] == cluster.anew
    await streams.look()
    assert [SIGNALS.name] == cluster.anew


async def test_what_was_thrown_away_is_made_as_soon_as_the_servers_take_it(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(SIGNALS)
    cluster.takes = False
    streams = await looked(cluster, monkeypatch, LOOKS + 2)
    assert {LEASES.name} == cluster.there
    cluster.takes = True
    await streams.look()
    assert {LEASES.name, SIGNALS.name} == cluster.there


async def test_what_another_instance_has_just_made_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(SIGNALS)
    cluster.mended_at = LOOKS + 1
    await looked(cluster, monkeypatch, LOOKS + 2)
    assert [] == cluster.anew


async def test_who_does_not_lead_makes_the_leases_alone_without_which_nobody_leads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster(LEASES, SIGNALS)
    cluster.held = False
    streams = await looked(cluster, monkeypatch, LOOKS + 2)
    assert [LEASES.name] == cluster.anew
    cluster.held = True
    await streams.look()
    assert [LEASES.name, SIGNALS.name] == cluster.anew

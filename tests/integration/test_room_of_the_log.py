"""A log whose servers have so much room each, as Kubernetes says it: the streams' limits fit it, the figure behind the
alert of a nearly full log is there, and a full log refuses what is new by name and keeps all that it took."""

import asyncio
import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from weft_contracts import permissions, subjects
from weft_contracts import topology as t
from weft_contracts.commit import Cause, Commit
from weft_contracts.facts import request
from weft_contracts.ids import CorrelationId, RequestId
from weft_eventlog import EventLog, LogFull
from weft_runtime.connection import connect, read_credentials
from weft_runtime.tls import TlsFolder, nats_options
from weft_testing.founded_mesh import FoundedMesh
from weft_testing.story import until

pytestmark = pytest.mark.slow
SIZE = 64 << 20
STREAMS = [
    *(each.name for each in t.STREAMS if each.storage == "file" and each.refuse_when_full),
    *(f"KV_{each.name}" for each in t.KEY_VALUES),
    *(f"OBJ_{each.name}" for each in t.OBJECT_STORES),
]
"""What is stored, and refuses what is new when it is full."""
CAUSE = Cause(CorrelationId("c"))


@pytest.fixture(params=[1, 3], ids=["one-server", "three-servers"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FoundedMesh]:
    """The servers of a founded mesh and its registry, which is told how much room each has."""
    mesh = FoundedMesh(tmp_path, nats=request.param, gateways=1, workers=0)
    try:
        mesh.found()
        for server in mesh.servers:
            mesh.start_server(server)
        mesh.start("registry", WEFT_NATS_STORE_SIZE="64MiB")
        mesh.ready("registry")
        yield mesh
    finally:
        mesh.close()


def figures(mesh: FoundedMesh) -> dict[str, float]:
    """What the registry tells of the log, by the name of the series."""
    text = mesh.says("registry", "/metrics")[1]
    return {name: float(value) for name, value in re.findall(r"^(weft_log_[a-z_]+)(?:\{[^}]*\})? (\S+)$", text, re.M)}


@asynccontextmanager
async def connected(mesh: FoundedMesh) -> AsyncGenerator[Any]:
    """As the registry, whose facts these are."""
    own = mesh.keys / "services/registry"
    urls = ",".join(f"tls://127.0.0.1:{client}" for client, _, _ in mesh.places.values())
    token, seed = read_credentials(own / "nats.creds")
    tls = nats_options(TlsFolder(own).client())
    inbox = permissions.service("registry").inbox
    client = await asyncio.wait_for(connect(urls, jwt=token, seed=seed, inbox=inbox, name="story", tls=tls), 30)
    try:
        yield client
    finally:
        await client.close()


def large(number: int) -> Commit:
    """A commit of some 60 kB about nothing that anybody waits for."""
    fact = request.Rejected(status=400, reason="x" * 60_000)
    return Commit(subjects.request(RequestId(f"r-{number}")), (fact,), None, CAUSE)


async def takes(events: EventLog, commit: Commit) -> bool:
    """Whether the log takes it; False: it says that it is full."""
    try:
        await events.append(commit)
    except LogFull:
        return False
    return True


@pytest.mark.sabotage("size-unheard")
async def test_a_log_takes_no_more_than_its_servers_have_room_for_and_keeps_what_it_took(log: FoundedMesh) -> None:
    # given servers whose room was said
    limit = await asyncio.to_thread(until, "the limit is told", lambda: figures(log).get("weft_log_limit_bytes"))
    async with connected(log) as client:
        js, events = client.jetstream(timeout=30), EventLog(client, actor="registry")
        limits = {name: (await js.stream_info(name)).config.max_bytes for name in STREAMS}
        # then all of it fits, and more than half of it is the log's
        assert limits[t.EVENTS.name] == limit > SIZE / 2
        assert min(limits.values()) > 0
        assert sum(limits.values()) <= SIZE
        # when it gets full
        number = 0
        while await takes(events, large(number)):
            number += 1
            assert number < SIZE // 60_000, "it takes more than there is room for"
        # then it was full at its limit, it refuses by name, one commit and several, and nothing is lost
        taken, info = await events.head(), await js.stream_info(t.EVENTS.name)
        assert taken >= number
        assert limit - 64_000 * 2 < info.state.bytes <= limit
        with pytest.raises(LogFull):
            await events.append(large(number), large(number + 1))
        assert (taken, taken) == (await events.head(), (await js.stream_info(t.EVENTS.name)).state.messages)
    # and the alert's figures say so
    until("the alert sees it", lambda: (now := figures(log))["weft_log_limit_bytes"] - now["weft_log_bytes"] < 1 << 20)
    # and with more room it takes what comes, after a new start of the registry
    log.stop("registry")
    log.start("registry", WEFT_NATS_STORE_SIZE="128MiB")
    log.ready("registry")
    until("there is room", lambda: figures(log).get("weft_log_limit_bytes", 0) > limit)
    async with connected(log) as client:
        assert (taken + 1,) == await EventLog(client, actor="registry").append(large(number))

"""A connection that is refused, or heard too late: what stays open meanwhile, and that it goes on trying."""

import asyncio
import gc
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import uvloop
from nats.aio.client import Client
from weft_contracts import certificates
from weft_contracts.permissions import service
from weft_identity import authority, trust
from weft_identity.mesh_exports import mesh_exports, service_credentials
from weft_identity.operator_mode import OperatorMode
from weft_runtime.connection import connect, read_credentials
from weft_runtime.service_connection import connected
from weft_runtime.settings import ServiceSettings
from weft_runtime.tls import TlsFolder, nats_options
from weft_servers import nats_server
from weft_servers.nats_conf import Listen
from weft_testing.waiting import until

from .between import Between, between

SECURED = pytest.mark.parametrize("secured", [False, True], ids=["plain", "TLS"])
TRIES = 3


class Two:
    """Two servers, of two meshes that believe each other's certificate, and a port that leads to the first."""

    def __init__(self, folder: Path, tls: Path | None, front: Between, ports: tuple[int, int]) -> None:
        self.front = front
        self.ours, self.others = ports
        self._folder = folder
        self._tls = tls

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.front.port}"

    async def agent(self) -> Client:
        """As an agent connects."""
        token, seed = read_credentials(self._folder / "registry.creds")
        tls = None if self._tls is None else nats_options(TlsFolder(self._tls).client())
        return await connect(self.url, jwt=token, seed=seed, inbox=service("registry").inbox, name="x", tls=tls)

    async def service(self) -> Client:
        """As a service connects."""
        credentials = self._folder / "registry.creds"
        settings = ServiceSettings(nats_url=self.url, nats_credentials=credentials, tls_folder=self._tls)
        return await connected("registry", settings)

    def leads_to_the_others(self) -> None:
        """Cut off who is there; who comes is refused from now on."""
        self.front.to = self.others
        self.front.cut()

    def leads_home(self) -> None:
        self.front.to = self.ours

    async def refused(self) -> None:
        """Return when who comes has come some times more."""
        seen = self.front.came

        async def often() -> bool:
            return self.front.came >= seen + TRIES

        await until(often)

    def sockets(self) -> int:
        """Those of this process that lead to the port."""
        there = psutil.Process().net_connections("tcp")
        return sum(bool(each.raddr) and each.raddr.port == self.front.port for each in there)


@asynccontextmanager
async def two(folder: Path, secured: bool, *, slowly: bool = False) -> AsyncGenerator[Two]:
    """`slowly`: who is refused is refused after 1.9 s, for which a server asks others for an account new to it."""
    tls: Path | None = None
    listen: Listen | None = None
    if secured:
        (folder / "authority").mkdir()
        mesh = authority.load_or_make(folder / "authority")
        mesh.lay_out(folder / "nats-tls", certificates.NATS)
        mesh.lay_out(folder / "registry-tls", "registry")
        tls, listen = folder / "registry-tls", Listen(tls=folder / "nats-tls")
    keys = [trust.load_or_make(folder / f"trust-{number}", mesh_exports()) for number in range(2)]
    (folder / "registry.creds").write_text(service_credentials(keys[0], "registry").text())

    ours_mode, others_mode = (each.operator_mode() for each in keys)
    if not slowly:  # they have heard of our account, though they don't believe the operator who signed it
        known = {**ours_mode.account_tokens, **others_mode.account_tokens}
        others_mode = replace(others_mode, account_tokens=known)

    def server(name: str, mode: OperatorMode) -> nats_server.NatsServer:
        return nats_server.start(folder / name, operator=mode, listen=listen)

    with server("ours", ours_mode) as ours, server("others", others_mode) as others:
        async with between(ours.conf.port) as front:
            yield Two(folder, tls, front, (ours.conf.port, others.conf.port))


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Without the garbage collector, which would close what was forgotten."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@SECURED
@pytest.mark.usefixtures("uncollected")
async def test_who_is_refused_again_and_again_holds_one_socket(tmp_path: Path, secured: bool) -> None:
    # slowly, so that a try is under way when it is told to stop
    async with two(tmp_path, secured, slowly=True) as place:
        # given one who was never let in
        place.leads_to_the_others()
        connecting = asyncio.create_task(place.agent())
        # when it has tried some times
        await place.refused()
        # then the last try's socket is all it has, and nothing when it is told to stop
        assert place.sockets() <= 1
        connecting.cancel()
        await asyncio.wait([connecting], timeout=30)
        await until(none_left(place))


@SECURED
@pytest.mark.usefixtures("uncollected")
async def test_who_was_cut_off_and_is_refused_holds_one_socket(tmp_path: Path, secured: bool) -> None:
    async with two(tmp_path, secured) as place:
        # given one who was let in
        client = await place.agent()
        # when it is cut off, and refused some times
        place.leads_to_the_others()
        await place.refused()
        # then the last try's socket is all it has
        assert place.sockets() <= 1
        # and when it is let in again it is there, and leaves nothing
        place.leads_home()
        await until(answered(client))
        await client.close()
        await until(none_left(place))


def test_a_service_that_was_refused_for_a_while_is_back_when_it_may(tmp_path: Path) -> None:
    async def story() -> None:
        async with two(tmp_path, secured=False) as place:
            client = await place.service()
            place.leads_to_the_others()
            await place.refused()
            place.leads_home()
            await until(answered(client))
            await client.close()

    as_a_service(story())


async def test_an_agent_whose_handshake_comes_too_late_tries_again(tmp_path: Path) -> None:
    async with two(tmp_path, secured=True) as place:
        await comes_late(place, place.agent)


def test_a_service_whose_handshake_comes_too_late_tries_again(tmp_path: Path) -> None:
    async def story() -> None:
        async with two(tmp_path, secured=True) as place:
            await comes_late(place, place.service)

    as_a_service(story())


async def comes_late(place: Two, connect: Callable[[], Awaitable[Client]]) -> None:
    # given a machine so busy that the server stops waiting for a handshake, and says in plain words that it wants one
    place.front.late = 2
    # when somebody connects
    client = await asyncio.wait_for(connect(), 30)
    # then the third try is in time, or one after it
    assert 3 <= (came := place.front.came)
    await until(answered(client))
    # and so it is after a cut
    place.front.late = 2
    place.front.cut()
    await until(answered(client))
    assert came + 3 <= place.front.came
    await client.close()


def as_a_service(story: Coroutine[Any, Any, None]) -> None:
    """On the loop that services have."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(story)


def answered(client: Any) -> Callable[[], Awaitable[bool]]:
    """Whether the server answers it."""

    async def probe() -> bool:
        if not client.is_connected:
            return False
        try:
            await client.flush(1)  # one that was written before a cut is noticed is never answered
        except Exception:  # of the client's, which have no common ancestor
            return False
        return True

    return probe


def none_left(place: Two) -> Callable[[], Awaitable[bool]]:
    async def probe() -> bool:
        return 0 == place.sockets()

    return probe

"""A server behind TLS and NATS over TLS, on real sockets: who gets in, what the others hear, what a renewal does."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import structlog
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from weft_contracts import certificates
from weft_contracts.permissions import service
from weft_identity import authority, trust
from weft_identity.authority import Authority
from weft_identity.mesh_exports import mesh_exports, service_credentials
from weft_runtime.connection import connect
from weft_runtime.secure_server import PEER, SecureServer
from weft_runtime.tls import TlsFolder, client_context, nats_options, why
from weft_runtime.web import QuietServer
from weft_servers import nats_server
from weft_servers.nats_conf import Listen
from weft_testing.waiting import until

NAME = "node/n-1"


@pytest.fixture
def mesh(tmp_path: Path) -> Authority:
    (tmp_path / "trust").mkdir()
    return authority.load_or_make(tmp_path / "trust")


@pytest.fixture
def foreign(tmp_path: Path) -> Authority:
    (tmp_path / "foreign").mkdir()
    return authority.load_or_make(tmp_path / "foreign")


async def whoami(request: Request) -> JSONResponse:
    return JSONResponse({"roles": sorted(request.scope[PEER]), "scheme": request.url.scheme})


@asynccontextmanager
async def serving(context: Callable[[], ssl.SSLContext]) -> AsyncGenerator[int]:
    """A server that says who its caller is; yields its port."""
    import socket

    app = Starlette(routes=[Route("/", whoami)])
    config = uvicorn.Config(app, lifespan="off", log_config=None, timeout_graceful_shutdown=1)
    server: QuietServer = SecureServer(config, context)
    listener = socket.create_server(("127.0.0.1", 0))
    task = asyncio.create_task(server.serve([listener]))
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        await asyncio.wait_for(task, 30)


async def ask(port: int, context: ssl.SSLContext | None, name: str = certificates.server_name(NAME)) -> str:
    """All that comes back, head and body, on a connection of its own."""
    named: dict[str, Any] = {} if context is None else {"ssl": context, "server_hostname": name}
    reader, writer = await asyncio.open_connection("127.0.0.1", port, **named)
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    try:
        return (await asyncio.wait_for(reader.read(), 30)).decode()
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def answer_or_end(port: int, context: ssl.SSLContext) -> str:
    """With TLS 1.3 a client learns at its first read that its certificate was not taken, if the line still stands."""
    try:
        return await ask(port, context)
    except OSError:
        return ""


async def test_a_server_knows_the_role_of_its_caller(mesh: Authority, tmp_path: Path) -> None:
    mesh.lay_out(tmp_path / "node", NAME)
    mesh.lay_out(tmp_path / "gateway", certificates.GATEWAY)
    async with serving(TlsFolder(tmp_path / "node").server) as port:
        assert '{"roles":["gateway"],"scheme":"https"}' in await ask(port, TlsFolder(tmp_path / "gateway").client())
        assert '{"roles":[],"scheme":"https"}' in await ask(port, client_context(mesh.pem))


async def test_who_speaks_plainly_is_told_in_a_sentence_and_so_is_the_log(mesh: Authority, tmp_path: Path) -> None:
    mesh.lay_out(tmp_path / "node", NAME)
    with structlog.testing.capture_logs() as said:
        async with serving(TlsFolder(tmp_path / "node").server) as port:
            answer = await ask(port, None)

    assert answer.startswith("HTTP/1.1 400 ")
    assert "This port speaks HTTPS" in answer
    assert ["plain connection to a TLS port"] == [line["event"] for line in said if line["log_level"] == "warning"]


async def test_certificates_of_another_mesh_and_expired_ones_are_refused_in_words(
    mesh: Authority, foreign: Authority, tmp_path: Path
) -> None:
    mesh.lay_out(tmp_path / "node", NAME)
    foreign.lay_out(tmp_path / "stranger", certificates.GATEWAY)
    mesh.lay_out(tmp_path / "late", certificates.GATEWAY, lasts_s=-1)
    (tmp_path / "stranger" / certificates.AUTHORITY).write_text(mesh.pem)  # it believes this mesh
    with structlog.testing.capture_logs() as said:
        async with serving(TlsFolder(tmp_path / "node").server) as port:
            for bearer in ("stranger", "late"):
                assert "200 OK" not in await answer_or_end(port, TlsFolder(tmp_path / bearer).client())

    assert ["its certificate is not of this mesh's authority", "its certificate has expired"] == [
        line["why"] for line in said if line["event"] == "connection refused"
    ]


async def test_a_caller_believes_neither_another_mesh_nor_another_node(
    mesh: Authority, foreign: Authority, tmp_path: Path
) -> None:
    mesh.lay_out(tmp_path / "node", NAME)
    async with serving(TlsFolder(tmp_path / "node").server) as port:
        with pytest.raises(ssl.SSLError) as other_mesh:
            await ask(port, client_context(foreign.pem))
        with pytest.raises(ssl.SSLError) as other_node:
            await ask(port, client_context(mesh.pem), certificates.server_name("node/n-2"))

    assert "its certificate is not of this mesh's authority" == why(other_mesh.value)
    assert "its certificate names another than it should" == why(other_node.value)


async def test_a_renewed_certificate_counts_for_the_next_connection_and_cuts_none(
    mesh: Authority, tmp_path: Path
) -> None:
    mesh.lay_out(tmp_path / "node", NAME)
    async with serving(TlsFolder(tmp_path / "node").server) as port:
        # given a connection that stands
        named: dict[str, Any] = {"ssl": client_context(mesh.pem), "server_hostname": certificates.server_name(NAME)}
        reader, writer = await asyncio.open_connection("127.0.0.1", port, **named)
        # when
        mesh.lay_out(tmp_path / "node", "node/n-9")
        # then
        assert "200 OK" in await ask(port, client_context(mesh.pem), certificates.server_name("node/n-9"))
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"HTTP/1.1 200 OK\r\n" == await asyncio.wait_for(reader.readline(), 30)
        writer.close()


async def test_a_server_without_a_certificate_yet_takes_callers_once_it_has_one(
    mesh: Authority, tmp_path: Path
) -> None:
    async with serving(TlsFolder(tmp_path / "node").server) as port:
        with pytest.raises(OSError, match=r"."):
            await ask(port, client_context(mesh.pem))
        mesh.lay_out(tmp_path / "node", NAME)
        assert "200 OK" in await ask(port, client_context(mesh.pem))


async def test_people_see_the_operators_certificate_and_who_names_the_mesh_sees_the_meshs(
    mesh: Authority, foreign: Authority, tmp_path: Path
) -> None:
    mesh.lay_out(tmp_path / "gateway", certificates.GATEWAY)
    foreign.lay_out(tmp_path / "own", "site", ["front.example.net"])
    folder = TlsFolder(tmp_path / "gateway")
    own = tmp_path / "own" / certificates.CERTIFICATE, tmp_path / "own" / certificates.KEY
    async with serving(lambda: folder.people(*own)) as port:
        assert "200 OK" in await ask(port, client_context(foreign.pem), "front.example.net")
        assert "200 OK" in await ask(port, client_context(mesh.pem), "gateway.weft.internal")


def heard(said: Sequence[Any]) -> Callable[[], Awaitable[bool]]:
    """Whether anything was said."""

    async def probe() -> bool:
        return bool(said)

    return probe


async def test_nats_takes_services_over_tls_alone_and_only_they_believe_it(
    mesh: Authority, foreign: Authority, tmp_path: Path
) -> None:
    keys = trust.load_or_make(tmp_path / "nats-trust", mesh_exports())
    user = service_credentials(keys, "registry")
    mesh.lay_out(tmp_path / "nats-tls", certificates.NATS)

    async def connected(tls: Any) -> None:
        async with asyncio.timeout(30):
            inbox = service("registry").inbox
            client = await connect(server.url, jwt=user.token, seed=user.seed.encode(), inbox=inbox, name="x", tls=tls)
            await client.close()

    listen = Listen(tls=tmp_path / "nats-tls")
    with nats_server.start(tmp_path / "nats", operator=keys.operator_mode(), listen=listen) as server:
        await connected(nats_options(client_context(mesh.pem)))
        for tls in (nats_options(client_context(foreign.pem)), None):
            with structlog.testing.capture_logs() as said:
                trying = asyncio.create_task(connected(tls))
                await until(heard(said))
                assert not trying.done()
                trying.cancel()
                await asyncio.wait([trying])
            assert "its certificate is not of this mesh's authority" in said[0]["error"]

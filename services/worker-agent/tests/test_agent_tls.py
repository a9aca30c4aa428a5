"""A node's way into a mesh that speaks TLS: whom it tells its token, what it keeps, and whom its own server answers."""

import asyncio
import json
import ssl
import stat
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from weft_contracts import certificates
from weft_identity import authority
from weft_identity.authority import Authority
from weft_runtime.secure_server import PEER
from weft_runtime.tls import TlsFolder
from weft_worker_agent.inbound.role_check import RoleCheck
from weft_worker_agent.outbound.mesh import joining as module
from weft_worker_agent.outbound.mesh.certificate import NodeCertificate, NoKey, secured
from weft_worker_agent.outbound.mesh.gateway import Gateway, NotNow, Refused
from weft_worker_agent.outbound.mesh.identity import NodeIdentity, load_or_make
from weft_worker_agent.outbound.mesh.joining import CannotJoin, Joining
from weft_worker_agent.outbound.mesh.mesh_trust import MeshTrust

BODY: dict[str, Any] = {"name": "one", "addresses": {"host": "127.0.0.1", "http_port": 4000}, "labels": {}}


@pytest.fixture
def mesh(tmp_path: Path) -> Authority:
    (tmp_path / "trust").mkdir()
    return authority.load_or_make(tmp_path / "trust")


@pytest.fixture
def foreign(tmp_path: Path) -> Authority:
    (tmp_path / "foreign").mkdir()
    return authority.load_or_make(tmp_path / "foreign")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    (tmp_path / "state").mkdir()
    return tmp_path / "state"


@pytest.fixture
def identity(state: Path) -> NodeIdentity:
    return load_or_make(state)


class Heard:
    """What came to a server, decrypted."""

    def __init__(self) -> None:
        self.bytes = b""
        self.connections = 0


@asynccontextmanager
async def answering(folder: Path, answers: list[tuple[int, Any]]) -> AsyncGenerator[tuple[str, Heard]]:
    """A TLS server with a folder's certificate and fixed answers, one after the other; its URL and what it heard."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / certificates.CERTIFICATE, folder / certificates.KEY)
    heard = Heard()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
                heard.bytes += head + await reader.readexactly(length)
                status, body = answers.pop(0) if len(answers) > 1 else answers[0]
                text = json.dumps(body).encode()
                writer.write(b"HTTP/1.1 %d X\r\ncontent-length: %d\r\n\r\n" % (status, len(text)) + text)
        except (asyncio.IncompleteReadError, OSError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}", heard
    finally:
        server.close()


def gateway(url: str, identity: NodeIdentity, state: Path, digest: str | None) -> Gateway:
    return Gateway(url, identity, trust=MeshTrust(NodeCertificate(state), digest))


async def test_a_token_goes_only_to_the_mesh_whose_authority_it_names(
    mesh: Authority, identity: NodeIdentity, state: Path, tmp_path: Path
) -> None:
    mesh.lay_out(tmp_path / "gateway", certificates.GATEWAY)
    async with answering(tmp_path / "gateway", [(202, {"node": "n"})]) as (url, heard):
        await gateway(url, identity, state, mesh.digest).register({"token": "s3cret"})

    assert b"s3cret" in heard.bytes
    assert mesh.pem == NodeCertificate(state).authority


async def test_a_man_in_the_middle_gets_nothing(
    mesh: Authority, foreign: Authority, identity: NodeIdentity, state: Path, tmp_path: Path
) -> None:
    foreign.lay_out(tmp_path / "between", certificates.GATEWAY, ["127.0.0.1"])
    async with answering(tmp_path / "between", [(202, {"node": "n"})]) as (url, heard):
        subject = Joining(gateway(url, identity, state, mesh.digest), state, BODY, "s3cret")
        with pytest.raises(CannotJoin, match="not of the mesh that the registration token names"):
            await subject.credential()

    assert b"" == heard.bytes
    assert NodeCertificate(state).authority is None


async def test_a_man_in_the_middle_who_shows_the_meshs_authority_beside_his_own_certificate_gets_nothing(
    mesh: Authority, foreign: Authority, identity: NodeIdentity, state: Path, tmp_path: Path
) -> None:
    foreign.lay_out(tmp_path / "between", certificates.GATEWAY)
    with (tmp_path / "between" / certificates.CERTIFICATE).open("a") as chain:
        chain.write(mesh.pem)
    async with answering(tmp_path / "between", [(202, {"node": "n"})]) as (url, heard):
        with pytest.raises(NotNow, match="not of this mesh's authority"):
            await gateway(url, identity, state, mesh.digest).register({"token": "s3cret"})

    assert b"" == heard.bytes


async def test_a_node_of_the_mesh_is_not_believed_to_be_its_gateway(
    mesh: Authority, identity: NodeIdentity, state: Path, tmp_path: Path
) -> None:
    mesh.lay_out(tmp_path / "node", "node/n-evil")
    async with answering(tmp_path / "node", [(202, {"node": "n"})]) as (url, heard):
        with pytest.raises(NotNow, match="names another"):
            await gateway(url, identity, state, mesh.digest).register({"token": "s3cret"})

    assert b"" == heard.bytes


async def test_a_mesh_that_is_known_is_asked_without_a_token_and_no_other(
    mesh: Authority, foreign: Authority, identity: NodeIdentity, state: Path, tmp_path: Path
) -> None:
    NodeCertificate(state).trust(ssl.PEM_cert_to_DER_cert(mesh.pem))
    foreign.lay_out(tmp_path / "between", certificates.GATEWAY)
    async with answering(tmp_path / "between", [(202, {})]) as (url, heard):
        with pytest.raises(NotNow, match="not of this mesh's authority"):
            await gateway(url, identity, state, None).credential()

    assert b"" == heard.bytes


async def test_a_credential_is_taken_once_its_certificate_is_for_the_nodes_own_key(
    mesh: Authority, identity: NodeIdentity, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_FIRST_S", 0.01)
    own = NodeCertificate(state)
    key = own.public_key()
    role = certificates.node_role(identity.node)
    strange = mesh.chain(authority.public_der(authority.new_key()), role, 60)
    good = mesh.chain(certificates.check_key(key), role, 60)
    base = {"jwt": "a.b.c", "nats_url": "tls://{gateway}:4222", "expires_at": 2e9}
    mesh.lay_out(tmp_path / "gateway", certificates.GATEWAY)
    answers = [(200, base), (200, base | {"certificate": strange}), (200, base | {"certificate": good})]
    async with answering(tmp_path / "gateway", answers) as (url, _):
        subject = Joining(gateway(url, identity, state, mesh.digest), state, BODY, None)
        found = await subject.fresh()

    assert good == found.certificate
    assert "tls://127.0.0.1:4222" == found.nats_url
    TlsFolder(own.folder).check()
    assert found.nats_tls is not None
    for name in (certificates.KEY, certificates.CERTIFICATE):
        assert 0o600 == stat.S_IMODE((own.folder / name).stat().st_mode)


def test_a_node_asks_certificates_for_one_key_all_its_life(state: Path) -> None:
    first, again = NodeCertificate(state).public_key(), NodeCertificate(state).public_key()

    assert first == again
    assert certificates.check_key(first)


def test_a_token_of_a_mesh_that_speaks_tls_is_not_sent_in_the_clear(state: Path, mesh: Authority) -> None:
    with pytest.raises(NoKey, match="https"):
        secured(state, "http://127.0.0.1:8080", mesh.digest)

    assert secured(state, "http://127.0.0.1:8080", None) is None
    assert secured(state, "https://front.example.net", None) is None  # believed as any server is
    assert secured(state, "https://127.0.0.1:8080", mesh.digest) is not None


async def test_a_man_in_the_middle_is_a_refusal_that_is_not_tried_again(
    mesh: Authority, foreign: Authority, identity: NodeIdentity, state: Path, tmp_path: Path
) -> None:
    foreign.lay_out(tmp_path / "between", certificates.GATEWAY)
    async with answering(tmp_path / "between", [(202, {})]) as (url, _):
        with pytest.raises(Refused):
            await gateway(url, identity, state, mesh.digest).credential()


async def ok(_: Request) -> PlainTextResponse:
    return PlainTextResponse("ok")


@pytest.mark.parametrize(
    ("path", "role", "status"),
    [
        ("/logs/m-1", "gateway", 200),
        ("/logs/m-1", "metadata-cache", 403),
        ("/logs/m-1", "node/n-2", 403),
        ("/logs/m-1", "", 403),
        ("/metadata/m-1/config", "metadata-cache", 200),
        ("/metadata/m-1/config", "gateway", 200),
        ("/metadata/m-1/config", "scheduler", 403),
        ("/metadata/m-1/config", "", 403),
        ("/v1/metadata/m-0/config", "gateway", 200),
        ("/v1/metadata/m-0/config", "metadata-cache", 200),
        ("/v1/metadata/m-0/config", "node/n-2", 403),
        ("/v1/metadata/m-0/config", "", 403),
        ("/metadata/m-1/config", "node/n-2", 403),
        ("/uploads/0a/m.gguf", "gateway", 200),
        ("/uploads/0a/m.gguf", "metadata-cache", 403),
        ("/uploads/0a/m.gguf", "node/n-2", 403),
        ("/uploads/0a/m.gguf", "", 403),
        ("/files/0/blake3:0", "node/n-2", 200),
        ("/files/0/blake3:0", "gateway", 403),
        ("/files/0/blake3:0", "", 403),
        ("/healthz", "", 200),
    ],
)
async def test_a_nodes_server_answers_each_role_what_it_needs(path: str, role: str, status: int) -> None:
    inner = RoleCheck(Starlette(routes=[Route("/{rest:path}", ok)]))

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await inner({**scope, PEER: frozenset({role} - {""})}, receive, send)

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="https://node") as client:
        answer = await client.get(path)

    assert status == answer.status_code
    if status == 403:
        assert "this is for certificates of the role" in answer.json()["detail"]

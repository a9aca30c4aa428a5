"""A mesh that speaks TLS throughout, here on loopback: joining, streams, renewal, and who is refused."""

import asyncio
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from weft_contracts import certificates
from weft_dataplane import SessionClient, SessionLost, make_hello
from weft_dataplane.tls import Certificates, names_node
from weft_testing.machine import done, machine, new_token
from weft_testing.story import MeshUnderTest, until

CREDENTIAL_S = 24
"""Of a node: above the 10 s before its end in which an agent does not show it any more."""
SLOW = {
    "source": {"kind": "simulated"},
    "engine": "simulated",
    "min_replicas": 2,
    "max_replicas": 2,
    "strategy": "spread",
    "engine_args": {"ms_per_token": 40},
}


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshUnderTest]:
    """A mesh of two workers, TLS everywhere, credentials of seconds, a model with a replica on each."""
    settings: dict[str, Any] = {"WEFT_TLS": "always", "WEFT_CREDENTIAL_HOURS": str(CREDENTIAL_S / 3600)}
    mesh = MeshUnderTest(tmp_path_factory.mktemp("closed"), workers=2, **settings)
    mesh.up("--no-model")
    try:
        assert mesh.deploy("slow", SLOW).status_code in (200, 201, 202)
        until("both replicas are ready", lambda: len(mesh.ready_replicas("slow")) == 2, 60)
        yield mesh
    finally:
        mesh.close()


def nodes(mesh: MeshUnderTest) -> dict[str, dict[str, Any]]:
    return {node["name"]: node for node in mesh.status()["nodes"]}


def run_of(mesh: MeshUnderTest, node: str) -> dict[str, Any]:
    """The `ready` fact of the run on a node, with the replica's id."""
    found = [each for each in mesh.facts("run", "ready") if each["key"].startswith(node)]
    return {**found[-1]["fact"], "replica": found[-1]["key"].partition(".")[2]}


def shown(port: int) -> bytes:
    """The certificate that a port shows to whoever comes, unchecked."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2", "http/1.1"])
    with socket.create_connection(("127.0.0.1", port), 30) as plain, context.wrap_socket(plain) as secure:
        return secure.getpeercert(binary_form=True) or b""


def session(mesh: MeshUnderTest, node: str, bearer: Path, demanded: str) -> str:
    """Open a session with the replica on a node; empty where that succeeds, else what was said.

    gRPC's client forgets what the host said where the stream ends between two of its writes: then it is asked again.
    """
    run = run_of(mesh, node)
    assigned = [each["fact"] for each in mesh.facts("node", "assigned") if each["fact"]["replica"] == run["replica"]]
    hello = make_hello(run["replica"], run["incarnation"], assigned[-1]["digest"], "impostor")
    shown = Certificates(bearer)

    async def opened() -> str:
        names = names_node(demanded)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        try:
            client = await SessionClient.open(
                f"127.0.0.1:{run['port']}", hello, credentials=shown.channel(), names=names
            )
        except SessionLost as lost:
            return str(lost)
        await client.close()
        return ""

    said = ""
    for _ in range(5):
        said = asyncio.run(opened())
        if "Internal error from Core" not in said:
            return said
    raise AssertionError(f"the host never said why: {said}")


def streamed(mesh: MeshUnderTest, tokens: int) -> tuple[int, str]:
    """How many tokens a stream brought, and how it ended."""
    body = {
        "model": "slow",
        "messages": [{"role": "user", "content": "Count"}],
        "max_tokens": tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
        "ignore_eos": True,
    }
    count, end = 0, ""
    with mesh.http.stream("POST", f"{mesh.url}/v1/chat/completions", json=body) as answer:
        for line in answer.iter_lines():
            end = line or end
            if line.startswith("data: {"):
                piece: dict[str, Any] = json.loads(line[6:])
                usage: dict[str, int] = piece.get("usage") or {}
                count = usage.get("completion_tokens", count)
    return count, end


@pytest.mark.slow
@pytest.mark.sabotage("engine-takes-any-certificate")
def test_an_engine_host_takes_sessions_from_gateways_alone_and_a_gateway_believes_only_the_node_it_asked_for(
    closed: MeshUnderTest,
) -> None:
    mesh = closed
    here, other = (nodes(mesh)[name]["id"] for name in ("worker-1", "worker-2"))
    gateway = mesh.state / "certificates" / "gateway"
    # a gateway's certificate opens a session
    assert "" == session(mesh, here, gateway, here)
    # a node's doesn't, its own neighbour's no more than its own
    for number in (1, 2):
        said = session(mesh, here, mesh.state / "workers" / str(number) / "tls", here)
        assert "takes sessions from gateways" in said
    # nor does that of a service that is no gateway
    assert "takes sessions from gateways" in session(mesh, here, mesh.state / "certificates" / "scheduler", here)
    # and who asks for the neighbour at this address believes nobody there
    assert "names another node" in session(mesh, here, gateway, other)
    # what was refused stands in the host's log
    said = mesh.http.get(f"{mesh.url}/api/replicas/{run_of(mesh, here)['replica']}/logs").text
    assert "caller turned away" in said


@pytest.mark.slow
@pytest.mark.sabotage("certificates-are-not-renewed")
def test_streams_go_on_while_credentials_and_certificates_are_renewed_and_new_connections_see_the_new_ones(
    closed: MeshUnderTest,
) -> None:
    mesh = closed
    ports = {name: (node["addresses"]["http_port"], run_of(mesh, node["id"])) for name, node in nodes(mesh).items()}
    before = {name: shown(port) for name, (port, _) in ports.items()}
    of_engines = {name: shown(run["port"]) for name, (_, run) in ports.items()}
    agents = {name: [agent.pid for agent in mesh.agents(name)] for name in ports}
    hosts = {name: [host.pid for host in mesh.hosts(name)] for name in ports}
    # when streams run for longer than a certificate lasts
    tokens = int(1.5 * CREDENTIAL_S / 0.04)
    found: list[tuple[int, str]] = []
    streams = [threading.Thread(target=lambda: found.append(streamed(mesh, tokens))) for _ in range(4)]
    for stream in streams:
        stream.start()
    for stream in streams:
        stream.join(5 * CREDENTIAL_S)
    # then none was cut
    assert [(tokens, "data: [DONE]")] * 4 == found
    # and file server and engine show other certificates, in the same processes
    for name, (port, run) in ports.items():
        assert before[name] != shown(port)
        assert of_engines[name] != shown(run["port"])
        assert agents[name] == [agent.pid for agent in mesh.agents(name)]
        assert hosts[name] == [host.pid for host in mesh.hosts(name)]
    # and nobody was lost on the way
    assert [] == mesh.facts("node", "unhealthy")
    assert 200 == mesh.chat("still there?", "slow", max_tokens=2).status_code


@pytest.mark.slow
@pytest.mark.sabotage("pin-is-not-compared")
def test_a_machine_joins_the_mesh_that_its_token_names_and_tells_it_to_nobody_else(closed: MeshUnderTest) -> None:
    mesh = closed
    token = new_token(mesh)
    secret, digest = certificates.split_token(token)
    assert digest is not None
    # given a token of another mesh: this one's gateway might as well be a man in the middle
    elsewhere = certificates.pinned_token(secret, certificates.authority_digest(b"another mesh"))
    with machine(mesh, "wary", elsewhere) as wary:
        assert 78 == until("the worker gives up", wary.poll, 60)
    assert "not of the mesh that the registration token names" in (mesh.folder / "wary.out").read_text()
    assert "wary" not in nodes(mesh)
    # when the token is whole, it joins, waits, and serves
    with machine(mesh, "third", token):
        until("it asks to join", lambda: "third" in nodes(mesh), 60)
        done(mesh, "nodes", "approve", "third")
        until("it is healthy", lambda: nodes(mesh)["third"]["state"] == "healthy", 60)
        tls = mesh.folder / "third" / "tls"
        assert 0o600 == (tls / certificates.KEY).stat().st_mode & 0o777
        # when it is removed, it is out at once
        done(mesh, "nodes", "remove", "third", "--force")
        until("it is gone", lambda: "third" not in nodes(mesh) or nodes(mesh)["third"]["state"] == "removed")


@pytest.mark.slow
@pytest.mark.sabotage("node-tells-anyone-its-logs")
def test_who_speaks_plainly_or_trusts_nobody_hears_why_and_the_command_line_just_works(closed: MeshUnderTest) -> None:
    mesh = closed
    port = mesh.url.rpartition(":")[2]
    plain = httpx.get(f"http://127.0.0.1:{port}/api/status", timeout=30)
    assert 400 == plain.status_code
    assert "This port speaks HTTPS" in plain.json()["detail"]
    stranger = mesh.weft("nodes", "list", "--url", f"https://localhost:{port}")
    assert 1 == stranger.returncode
    assert "a certificate that is not trusted here" in stranger.stderr
    assert "worker-2" in mesh.weft("nodes", "list").stdout
    assert "ready" in mesh.weft("status").stdout
    assert '"ok": true' in mesh.weft("doctor", "--json").stdout
    # a node's server tells nobody a log who is no gateway
    address = nodes(mesh)["worker-1"]["addresses"]["http_port"]
    answer = httpx.get(f"https://127.0.0.1:{address}/logs/x", verify=False, timeout=30)
    assert 403 == answer.status_code
    assert "the role gateway only" in answer.json()["detail"]
    # NATS is spoken to by nobody without TLS
    nats = next(part["port"] for part in mesh.run_file()["parts"] if part["name"] == "nats")
    with socket.create_connection(("127.0.0.1", nats), 30) as line:
        line.settimeout(30)
        greeting = line.recv(4096)
        line.sendall(b'CONNECT {"verbose":false}\r\nPING\r\n')
        began, more = time.monotonic(), b""
        while time.monotonic() - began < 5 and (piece := line.recv(4096)):
            more += piece
    assert b'"tls_required":true' in greeting
    assert b"PONG" not in more

"""Old and new side by side: a fact that a service doesn't know, and one that it can't read."""

import asyncio
from collections.abc import Iterator
from typing import Any

import nats
import pytest
from weft_identity import trust
from weft_identity.grants import FULL
from weft_identity.nkey import KeyPair
from weft_testing.story import MeshUnderTest, until

pytestmark = pytest.mark.slow


def append(mesh: MeshUnderTest, subject: str, body: bytes, **headers: str) -> None:
    """Write to the log as no service would."""
    import base64

    keys = trust.load(mesh.state / "trust")
    user = keys.user(trust.Account.MESH, "story", FULL)
    key = KeyPair.from_seed(user.seed)

    async def write() -> None:
        options: dict[str, Any] = {
            "user_jwt_cb": user.token.encode,
            "signature_cb": lambda nonce: base64.b64encode(key.sign(nonce.encode())),  # pyright: ignore
        }
        client = await nats.connect(f"nats://127.0.0.1:{mesh.part('nats')['port']}", **options)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        await client.jetstream(timeout=30).publish(subject, body, headers=named)
        await client.close()

    asyncio.run(write())


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshUnderTest]:
    """Of both stories, in their order: what the last one appends stops all deciding."""
    with MeshUnderTest(tmp_path_factory.mktemp("old-and-new")) as mesh:
        yield mesh


@pytest.mark.sabotage("blind-to-garbage")
def test_an_event_that_cannot_be_read_sets_its_aggregate_aside_and_nothing_else(mesh: MeshUnderTest) -> None:
    # when
    append(mesh, "weft.ev.model.m-garbled.spec_accepted", b"garbled")

    # then health names it
    def said() -> bool:
        port = mesh.part("reconciler")["port"]
        return "m-garbled" in mesh.http.get(f"http://127.0.0.1:{port}/healthz").text

    until("the reconciler says what it can't read", said)
    # and others are decided about as before
    spec = {"source": {"kind": "simulated"}, "engine": "simulated"}
    mesh.deploy("sound", spec).raise_for_status()
    until("it serves", lambda: mesh.ready_replicas("sound"), 60)
    assert "Paris" in mesh.ask()


@pytest.mark.sabotage("deaf-to-new")
def test_a_fact_of_the_future_stops_deciding_says_so_and_leaves_requests_alone(mesh: MeshUnderTest) -> None:
    # when a newer writer appends what this release doesn't know, marked as ignorable
    append(mesh, "weft.ev.mesh.mesh.sang", b'[{"type":"sang","v":1}]', Weft_Skippable="sang")
    # then nothing changes
    spec = {"source": {"kind": "simulated"}, "engine": "simulated"}
    mesh.deploy("before", spec).raise_for_status()
    # when it isn't
    append(mesh, "weft.ev.mesh.mesh.sang", b'[{"type":"sang","v":1}]')

    # then the deciding services say so, and decide nothing
    def said() -> bool:
        port = mesh.part("reconciler")["port"]
        health = mesh.http.get(f"http://127.0.0.1:{port}/healthz")
        return health.status_code == 503 and "mesh.sang" in health.text

    until("the reconciler says what it doesn't know", said)
    assert mesh.deploy("after", spec).status_code in (503, 504)
    # and requests are served
    assert "Paris" in mesh.ask()

"""Copies of secrets on a real server: laid out for who is to have them, erased where nobody is."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from nats.aio.client import Client
from weft_contracts import secrets
from weft_contracts.facts.mesh import SecretRemoved, SecretSet
from weft_contracts.facts.model import Scaled, SpecAccepted
from weft_contracts.facts.node import Approved, Assigned, Joined, Removed
from weft_contracts.facts.replica import Placed
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import Addresses, Member, ModelSpec, Receipt
from weft_contracts.ids import ModelId, NodeId, ReplicaId, TokenId, node_id_of
from weft_contracts.subjects import MESH, model, node, replica
from weft_eventlog.sealed_secrets import get_sealed, put_sealed, sealed_keys
from weft_identity import sealing
from weft_identity.nkey import KeyPair, Role
from weft_registry.domain.state import RegistryState
from weft_registry.outbound import secret_copies
from weft_registry.outbound.secret_copies import SecretCopies
from weft_testing import HandLog
from weft_testing.mesh_server import MeshServer

KEYED = ModelSpec(source=SimulatedSource(), engine="simulated", engine_args={"api_key": "secret:key"})
RECEIPT = Receipt(
    position=1, policy="p", policy_digest="d", seed=0, trigger="e", decided_at=0.0, refusals={}, candidates=()
)
FIRST, SECOND = "1" * 32, "2" * 32


class World:
    """A registry's copies over a log in the hand and a real server."""

    def __init__(self, mesh: MeshServer, registry: Client, gateway: Client) -> None:
        self.mesh = mesh
        self.registry, self.gateway = registry, gateway
        self.log = HandLog()
        self.state = RegistryState()
        self.log.listen(self.state.apply)
        self.client: Any = registry
        self.held = True
        self.current = True
        self.key = sealing.registry_key(mesh.trust)
        self.task = self.start()

    def start(self) -> "asyncio.Task[None]":
        """A registry that knows nothing of what one before it did."""
        world: Any = self
        return asyncio.create_task(
            SecretCopies(world, self.state, world, self.mesh.trust, lambda: self.current).run(), name="copies"
        )

    def a_node(self) -> NodeId:
        """A node that is approved."""
        key = KeyPair.new(Role.USER)
        id = node_id_of(key.public)
        addresses = Addresses(host="127.0.0.1", http_port=1)
        joined = Joined(name=id, public_key=key.public, token=TokenId("t"), addresses=addresses)
        self.log.given(node(id), joined, Approved(by="admin"))
        return id

    def place(self, on: NodeId) -> None:
        """Give a node a replica whose spec names the secret."""
        at, id = ModelId("m-1"), ReplicaId("m-1-1")
        self.log.given(model(at), SpecAccepted(name="mine", revision=1, digest="d", spec=KEYED))
        self.log.given(model(at), Scaled(revision=1, add=(id,), why="wanted"))
        members = (Member(node=on, rank=0, devices=()),)
        place: dict[str, Any] = {"model": at, "revision": 1, "epoch": 1, "members": members}
        self.log.given(node(on), Assigned(replica=id, model_name="mine", digest="d", spec=KEYED, **place))
        self.log.given(replica(id), Placed(receipt=RECEIPT, **place))

    async def put(self, value: bytes, version: int, id: str, *, bound_to: str = "key") -> None:
        """Set the secret, as a gateway and the rule do."""
        key = await until(lambda: get_sealed(self.gateway, secrets.KEY))
        sealed = sealing.seal(value, key, secrets.bound_to_name(bound_to))
        await put_sealed(self.gateway, secrets.sealed_key(id), sealed)
        self.log.given(MESH, SecretSet(name="key", version=version, sealed=id))

    async def keys(self) -> set[str]:
        """What lies in the bucket, beside the registry's key."""
        return await sealed_keys(self.registry) - {secrets.KEY}

    async def comes_to(self, *keys: str) -> None:
        """Wait until these and no others lie there."""

        async def there() -> bool:
            return await self.keys() == set(keys)

        await until(there)


async def until(look: Callable[[], Any]) -> Any:
    async with asyncio.timeout(30):
        while not (found := await look()):
            await asyncio.sleep(0.02)
    return found


@pytest.fixture
async def world(mesh_server: MeshServer) -> AsyncIterator[World]:
    world = World(mesh_server, await mesh_server.service("registry"), await mesh_server.service("gateway"))
    yield world
    world.task.cancel()


def lies(id: str) -> str:
    return secrets.sealed_key(id)


async def test_a_node_gets_its_copy_when_it_is_to_run_what_names_the_secret_and_none_after(world: World) -> None:
    here, there = world.a_node(), world.a_node()
    await world.put(b"value", 5, FIRST)
    await world.comes_to(lies(FIRST))
    world.place(here)
    await world.comes_to(lies(FIRST), secrets.copy_key(here, "key", 5))
    copy = await get_sealed(world.gateway, secrets.copy_key(here, "key", 5))
    assert copy is not None
    assert b"value" not in copy
    # set anew: the old value and the old copy go
    await world.put(b"other", 9, SECOND)
    await world.comes_to(lies(SECOND), secrets.copy_key(here, "key", 9))
    # the node is out
    world.log.given(node(here), Removed(why="gone"))
    await world.comes_to(lies(SECOND))
    assert not any(there in key for key in await world.keys())
    world.log.given(MESH, SecretRemoved(name="key"))
    await world.comes_to()


async def test_another_registry_goes_on_where_one_was_killed(world: World) -> None:
    here = world.a_node()
    await world.put(b"value", 5, FIRST)
    world.place(here)
    await world.comes_to(lies(FIRST), secrets.copy_key(here, "key", 5))
    world.task.cancel()
    # what changed while none was there
    await world.put(b"other", 9, SECOND)
    world.task = world.start()
    await until(lambda: get_sealed(world.gateway, secrets.copy_key(here, "key", 9)))

    async def gone() -> bool:
        return secrets.copy_key(here, "key", 5) not in await world.keys()

    await until(gone)
    assert {lies(FIRST), lies(SECOND), secrets.copy_key(here, "key", 9)} == await world.keys()


async def test_what_nobody_came_to_claim_is_erased_after_its_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.put(b"value", 5, FIRST)
    monkeypatch.setattr(secret_copies, "LIST_EVERY", 0.05)
    await put_sealed(world.gateway, lies(SECOND), b"of a request that never came")
    await world.comes_to(lies(FIRST), lies(SECOND))
    monkeypatch.setattr(secret_copies, "UNCLAIMED", 0.0)
    await world.comes_to(lies(FIRST))


async def test_a_value_that_can_not_be_opened_is_said_in_the_copys_place(world: World) -> None:
    here = world.a_node()
    await world.put(b"value", 5, FIRST, bound_to="another")
    world.place(here)
    await until(lambda: get_sealed(world.gateway, secrets.copy_key(here, "key", 5)))
    assert secrets.UNREADABLE == await get_sealed(world.gateway, secrets.copy_key(here, "key", 5))
    world.log.given(MESH, SecretSet(name="key", version=7, sealed=SECOND))  # whose value is not there
    await until(lambda: get_sealed(world.gateway, secrets.copy_key(here, "key", 7)))
    assert secrets.UNREADABLE == await get_sealed(world.gateway, secrets.copy_key(here, "key", 7))


@pytest.mark.parametrize("what", ["held", "current"])
async def test_who_does_not_lead_or_does_not_know_the_log_touches_nothing(world: World, what: str) -> None:
    here = world.a_node()
    await world.put(b"value", 5, FIRST)
    setattr(world, what, False)
    await asyncio.sleep(0)
    world.place(here)
    world.log.given(MESH, SecretRemoved(name="key"))
    world.task.cancel()
    await asyncio.gather(world.task, return_exceptions=True)
    again = world.start()
    await asyncio.sleep(3 * secret_copies.LOOK)
    assert {lies(FIRST)} == await world.keys()
    setattr(world, what, True)
    await world.comes_to(lies(FIRST))
    again.cancel()

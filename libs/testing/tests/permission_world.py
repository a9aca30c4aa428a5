"""What the tests of permissions look at: all that the mesh holds, and what the server denied."""

from dataclasses import dataclass, field
from typing import Any

from nats.aio.client import Client
from nats.js.client import JetStreamContext
from weft_contracts.ids import NodeId
from weft_testing.flushed import flushed
from weft_testing.mesh_server import MeshServer
from weft_testing.waiting import until

ONE, TWO = NodeId("n-one"), NodeId("n-two")
API = "$JS.API"


@dataclass
class World:
    """All that the mesh's account holds: messages by stream and subject, each stream's last sequence, streams' and
    consumers' settings."""

    messages: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    last: dict[str, int] = field(default_factory=dict[str, int])
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    durables: dict[str, Any] = field(default_factory=dict[str, Any])

    def new(self, later: "World") -> set[str]:
        """Subjects that have got messages since."""
        return {
            subject
            for stream, counts in later.messages.items()
            for subject, count in counts.items()
            if count > self.messages[stream].get(subject, 0)
        }

    def lost(self, later: "World") -> set[str]:
        """Subjects that have lost messages since."""
        return later.new(self)


async def look(js: JetStreamContext) -> World:
    world = World()
    for info in await js.streams_info():
        name = info.config.name
        assert name is not None
        counted = await js.stream_info(name, subjects_filter=">")
        world.messages[name] = dict(counted.state.subjects or {})
        world.last[name] = counted.state.last_seq
        world.settings[name] = info.config
    for consumer in await js.consumers_info("EVENTS"):
        if consumer.config.durable_name:
            world.durables[consumer.name] = (consumer.config, consumer.delivered)
    return world


async def denied(mesh: MeshServer, client: Client, count: int = 1) -> list[str]:
    """The subjects that the server has denied the client, once there are so many; nats-py lowers their case."""
    await flushed(client)

    async def said() -> list[str]:
        errors = [error for error in mesh.errors if "permissions violation" in error.lower()]
        return errors if len(errors) >= count else []

    return sorted(error.partition('"')[2].rstrip("\"'") for error in await until(said, timeout=30))

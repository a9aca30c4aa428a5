"""What observers cost the event log's server, at a steady rate of commits: one that reads, and places nobody reads.

    python bench/observers.py [--rate 1000] [--seconds 5] [--places 1000]

Starts a real server (`sync_interval: always`) in a temporary folder. Beside them stands what the server would pay to
publish each commit once more for whoever listens (`republish`), which is what a mesh without places would need.
"""

import argparse
import asyncio
import os
import resource
import tempfile
import time
from pathlib import Path

import psutil
from nats.errors import TimeoutError as NothingYet
from nats.js.api import ConsumerConfig, RePublish
from nats.js.client import JetStreamContext
from weft_contracts.topology import EVENTS, observer_durable
from weft_eventlog import apply_durable, drop_durable
from weft_eventlog.placed_client import PlacedClient
from weft_testing.mesh_server import MeshServer, running_mesh_server

BODY = b'[{"type":"healthy","v":1}]' + b" " * 300
CHUNK = 100


class Reader:
    """One observer that does nothing with what it reads."""

    def __init__(self, mesh: MeshServer, name: str) -> None:
        self._mesh = mesh
        self._name = name
        self._client = PlacedClient(lambda there: None)
        self.read = 0

    async def run(self) -> None:
        """Read and acknowledge, for ever."""
        file = self._mesh.observer_file(self._name)
        await self._client.connect(
            self._mesh.url, user_credentials=str(file), inbox_prefix=f"_INBOX_{self._name}".encode()
        )
        js = self._client.jetstream()
        place = await js.pull_subscribe("weft.ev.>", observer_durable(self._name).name, EVENTS.name, ConsumerConfig())
        try:
            while True:
                try:
                    [message] = await place.fetch(timeout=5)
                except NothingYet:
                    continue
                self.read += 1
                await message.ack()
        finally:
            await place.unsubscribe()
            await self._client.close()


async def line(what: str, server: psutil.Process, js: JetStreamContext, rate: int, seconds: float) -> None:
    """Publish at the rate, and print what that cost."""
    count, own = int(rate * seconds), resource.getrusage(resource.RUSAGE_SELF)
    theirs, began = sum(server.cpu_times()[:2]), time.perf_counter()
    for sent in range(0, count, CHUNK):
        await asyncio.gather(
            *(js.publish(f"weft.ev.node.n-{sent + n}.healthy", BODY, timeout=60) for n in range(CHUNK))
        )
        await asyncio.sleep(max(0.0, began + (sent + CHUNK) / rate - time.perf_counter()))
    wall = time.perf_counter() - began
    theirs = sum(server.cpu_times()[:2]) - theirs
    after = resource.getrusage(resource.RUSAGE_SELF)
    mine = after.ru_utime + after.ru_stime - own.ru_utime - own.ru_stime
    print(
        f"{what:<44}{count / wall:>7,.0f} /s   server {1e6 * theirs / count:>6.0f} µs a commit "
        f"({100 * theirs / wall:>4.0f} % of a core)   this process {1e6 * mine / count:>5.0f} µs   "
        f"server's memory {server.memory_info().rss >> 20} MB",
        flush=True,
    )


async def main(rate: int, seconds: float, places: int) -> None:
    """Measure on one server, line by line."""
    print(f"load average {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as folder:
        async with running_mesh_server(Path(folder)) as mesh:
            root = await mesh.root()
            js, server = root.jetstream(timeout=60), psutil.Process(mesh.server.pid)
            await line("nobody", server, js, rate, seconds)
            await apply_durable(
                root, observer_durable("one", int((await js.stream_info(EVENTS.name)).state.last_seq) + 1)
            )
            reader = Reader(mesh, "one")
            reading = asyncio.create_task(reader.run())
            await line("one observer that reads", server, js, rate, seconds)
            deadline = time.perf_counter() + 60
            while reader.read < int(rate * seconds) and time.perf_counter() < deadline:
                await asyncio.sleep(0.02)
            late = time.perf_counter() + 60 - deadline
            print(f"  it had read {reader.read:,} of {int(rate * seconds):,} {late:.2f} s later")
            reading.cancel()
            await asyncio.wait([reading])
            await drop_durable(root, observer_durable("one"))
            for number in range(places):
                await apply_durable(root, observer_durable(f"o-{number}"))
            await line(f"{places:,} places that nobody reads", server, js, rate, seconds)
            for number in range(places):
                await drop_durable(root, observer_durable(f"o-{number}"))
            config = (await js.stream_info(EVENTS.name)).config
            config.republish = RePublish(src="weft.ev.>", dest="weft.observed.>")
            await js.update_stream(config)
            await line("each commit published once more, unheard", server, js, rate, seconds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=int, default=1_000, help="commits a second")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each line")
    parser.add_argument("--places", type=int, default=1_000, help="that nobody reads from")
    given = parser.parse_args()
    asyncio.run(main(given.rate, given.seconds, given.places))

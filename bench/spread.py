"""How long files take to come to many nodes, held against one copy, on links of a bounded rate.

    python bench/spread.py [--nodes 8] [--megabytes 512] [--mbit 200] [--rounds 1] [--folder FOLDER]

Each node, the hub and the mesh's services have a network namespace of their own, on one switch; the links of the nodes
and of the hub let so much through each way (`tc … tbf`, and netem is not used). Real agents over the mesh's TLS fetch a
model's files ahead of need: first one of them a model from the hub, then all of them at once another model of the same
size. The hub's file is sparse, what is fetched is real and lies in FOLDER. Times are the log's, from the wish to the
last node's word. Needs no root; Debian and Ubuntu have what it needs in util-linux and iproute2.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import ahead
import psutil
from weft_testing.lan import Lan
from weft_testing.story import MeshUnderTest, until
from weft_testing.wired_mesh import Door, WorkerUnderTest, client

MB = 10**6
Agents = dict[str, psutil.Process]
"""The nodes' by name."""


@contextmanager
def wired_mesh(folder: Path, lan: Lan, names: list[str], **asking: str) -> Generator[tuple[MeshUnderTest, Agents]]:
    """A mesh on `gate` with a worker on each of the other machines, all healthy."""
    with ExitStack() as stack:
        gate = lan["gate"]
        mesh = MeshUnderTest(folder, workers=0, inside=gate.argv, WEFT_ALLOW_ANONYMOUS="1")
        stack.callback(mesh.close)
        mesh.up("--listen", "0.0.0.0", "--no-model")
        door = Door(gate, f"unix:{folder}/door", f"tcp:127.0.0.1:{urlsplit(mesh.url).port}")
        stack.callback(door.close)
        mesh.http.close()
        mesh.http = client(folder / "door", authority=mesh.state / "trust" / "authority.pem")
        said = mesh.weft("status").stdout
        line = next(each.strip() for each in said.splitlines() if "weft worker --join" in each)
        agents: Agents = {}
        for name in names:
            worker = WorkerUnderTest(lan[name], line, folder, "--name", name, **asking)
            stack.callback(worker.close)
            until(f"{name} asks to join", lambda name=name: state(mesh, name))
            if state(mesh, name) == "pending":
                mesh.http.post(f"{mesh.url}/api/nodes/{name}/approve").raise_for_status()
            until(f"{name} is healthy", lambda name=name: state(mesh, name) == "healthy", 60)
            agents[name] = agent_of(worker)
        yield mesh, agents


def state(mesh: MeshUnderTest, name: str) -> str:
    """How a node stands; empty: nobody knows it."""
    return next((str(node["state"]) for node in mesh.status()["nodes"] if node["name"] == name), "")


def agent_of(worker: WorkerUnderTest) -> psutil.Process:
    """The agent under a worker's supervisor."""
    below = psutil.Process(worker.pid).children(recursive=True)
    return next(each for each in below if "--agent" in each.cmdline())


def sent(lan: Lan, name: str) -> int:
    """Bytes that a machine has sent."""
    return int(json.loads(lan.switch("ip", "-json", "-s", "link", "show", f"port-{name}"))[0]["stats64"]["rx"]["bytes"])


def main() -> None:
    """Print what one copy takes, and what all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--megabytes", type=int, default=512)
    parser.add_argument("--mbit", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="on the disk that is written to (default: a temporary folder)")
    given = parser.parse_args()
    names = [f"node-{number}" for number in range(given.nodes)]
    size = given.megabytes * MB
    with tempfile.TemporaryDirectory(prefix="weft-bench-", dir=given.folder) as made, ExitStack() as stack:
        folder = Path(made)
        (folder / "hub").mkdir()
        files = ahead.sparse(folder / "hub", 2 * given.rounds, size)
        lan = stack.enter_context(Lan("gate", "hub", *names))
        url = stack.enter_context(ahead.hub(folder / "hub", lan["hub"].address, lan["hub"].argv))
        mesh, agents = stack.enter_context(wired_mesh(folder, lan, names, **ahead.settings(url, folder)))
        models = [ahead.deploy(mesh, file) for file in files]
        for name in ("hub", *names):
            lan.narrow(name, given.mbit * MB)
        within = 60 + 40 * size * 8 / (given.mbit * MB)
        print(f"{given.megabytes} MB at {given.mbit} Mbit/s: {size * 8 / (given.mbit * MB):.1f} s at least")
        for turn in range(given.rounds):
            one = ahead.fetch(mesh, models[2 * turn], {names[0]: agents[names[0]]}, within)
            before = sent(lan, "hub")
            every = ahead.fetch(mesh, models[2 * turn + 1], agents, within)
            copies = (sent(lan, "hub") - before) / size
            print(
                f"one {one.wall:.1f} s, {given.nodes} nodes {every.wall:.1f} s, {every.wall / one.wall:.2f} times that;"
                f" {copies:.2f} copies left the hub; processor, s: {one.cpu:.1f}, and {every.cpu:.1f}"
                f" ({every.cpu / given.nodes:.1f} a node); an agent's memory {every.rested:.0f} MiB before,"
                f" {every.memory:.0f} at most; load {os.getloadavg()[0]:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()

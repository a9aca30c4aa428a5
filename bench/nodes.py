"""What many nodes cost: joining, resting, and being lost.

    python bench/nodes.py [--nodes 1000] [--seconds 30] [--replicas 200]

Simulated agents, all in this process, on an embedded mesh: each with its own key, NATS connection, credential (by
registration, approval and signed poll) and lease, and each follows its part of the log. Then 40 % of them are killed at
once (the brake holds, nothing is replaced) and return, and a minute later 3 % that carry replicas (which move).
CPU is counted by the kernel; the agents' own is not in it.
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from mesh_cpu import look
from weft_testing.story import MeshUnderTest
from weft_testing.swarm import Agent, Swarm, each, wait_until

PARTS = ("registry", "nats", "gateway", "scheduler", "reconciler", "metadata-cache")
SIMULATED = {"source": {"kind": "simulated"}, "engine": "simulated", "strategy": "spread"}


def main() -> None:
    """Print each figure as it comes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=30, help="how long the mesh is looked at while it rests")
    parser.add_argument("--replicas", type=int, default=200)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as folder:
        mesh = MeshUnderTest(Path(folder))
        try:
            mesh.up("--no-model")
            asyncio.run(measure(mesh, given.nodes, given.seconds, given.replicas))
        finally:
            mesh.close()


async def measure(mesh: MeshUnderTest, nodes: int, seconds: float, replicas: int) -> None:
    """The whole run."""
    swarm = Swarm(mesh.url, nodes, swarm="yes")
    try:
        before = look(mesh)
        took = await swarm.join()
        healthy = await wait_until("all are healthy", lambda: all_are(swarm, swarm.agents, "healthy"), 120)
        told = ", ".join(f"{name} {second:.1f} s" for name, second in (took | {"healthy after": healthy}).items())
        print(f"{nodes} nodes joined in {sum(took.values()) + healthy:.1f} s ({told}); load {os.getloadavg()[0]:.1f}")
        print(f"CPU of the joining, s: {spent(before, look(mesh))}")

        await asyncio.sleep(35)  # the registry's grace
        await rest(mesh, seconds, "at rest")
        if replicas:
            spec = SIMULATED | {"selector": {"swarm": "yes"}, "min_replicas": replicas, "max_replicas": replicas}
            body = {"name": "carried", "spec": spec}
            began = time.monotonic()
            (await swarm.http.post(f"{mesh.url}/api/models", json=body)).raise_for_status()
            await wait_until("all replicas are ready", lambda: ready(swarm, replicas), 180)
            print(f"{replicas} replicas ready after {time.monotonic() - began:.1f} s")
            await rest(mesh, seconds, f"at rest with {replicas} replicas")

        lost = swarm.agents[: 2 * nodes // 5]
        head = mesh.status()["log"]["position"]
        began = time.monotonic()
        await swarm.die(lost)
        await wait_until("the brake is set", lambda: braked(swarm), 30)
        print(f"{len(lost)} killed at once: the brake is set after {time.monotonic() - began:.1f} s")
        await asyncio.sleep(15)
        facts = Counter(fact["type"] for event in mesh.events(head) for fact in event["facts"])
        print(f"  15 s later: {dict(facts)}")
        await each(lost, Agent.start)
        took_back = await wait_until("the brake is lifted", lambda: unbraked(swarm), 60)
        await wait_until("all are healthy", lambda: all_are(swarm, swarm.agents, "healthy"), 120)
        print(f"  returned: the brake is lifted after {took_back:.1f} s")

        await asyncio.sleep(65)  # nobody was silent within the last minute
        dying = [agent for agent in swarm.agents if agent.running][: max(1, 3 * nodes // 100)]
        carried = {replica for agent in dying for replica in agent.running}
        began = time.monotonic()
        await swarm.die(dying)
        await wait_until("they are offline", lambda: all_are(swarm, dying, "offline"), 60)
        offline = time.monotonic() - began
        if carried:
            await wait_until("their replicas moved", lambda: moved(swarm, carried, replicas), 120)
        after = time.monotonic() - began
        print(f"{len(dying)} killed: offline after {offline:.1f} s, {len(carried)} replicas moved after {after:.1f} s")
    finally:
        await swarm.close()


async def rest(mesh: MeshUnderTest, seconds: float, what: str) -> None:
    """Print what each part takes while nothing happens."""
    before, began = look(mesh), time.monotonic()
    await asyncio.sleep(seconds)
    after, wall = look(mesh), time.monotonic() - began
    cpu = spent(before, after)
    shares = {part: 100 * cpu.get(part, 0.0) / wall for part in PARTS}
    pss = {part: sum(now.pss for now in after.values() if now.part == part) / 1e6 for part in PARTS}
    together = sum(shares[part] for part in ("registry", "nats", "gateway"))
    print(f"{what}, {wall:.0f} s, load {os.getloadavg()[0]:.1f}: registry, nats and gateway {together:.1f} % of a core")
    for part in PARTS:
        print(f"  {part:<16}{shares[part]:>8.1f} % {pss[part]:>8.0f} MB")


def spent(before: Any, after: Any) -> dict[str, float]:
    """CPU seconds by part."""
    found: Counter[str] = Counter()
    for process, now in after.items():
        found[now.part] += now.cpu - (before[process].cpu if process in before else 0.0)
    return {part: round(found[part], 2) for part in PARTS}


async def all_are(swarm: Swarm, agents: list[Agent], state: str) -> bool:
    states = await swarm.states()
    return all(states.get(agent.id) == state for agent in agents)


async def status(swarm: Swarm) -> dict[str, Any]:
    return (await swarm.http.get(f"{swarm.url}/api/status")).json()


async def ready(swarm: Swarm, count: int) -> bool:
    return sum(replica["state"] == "ready" for replica in (await status(swarm))["replicas"]) >= count


async def moved(swarm: Swarm, carried: set[Any], count: int) -> bool:
    left = [r for r in (await status(swarm))["replicas"] if r["state"] == "ready" and r["id"] not in carried]
    return len(left) >= count


async def braked(swarm: Swarm) -> bool:
    return (await status(swarm))["mesh"]["brake"] is not None


async def unbraked(swarm: Swarm) -> bool:
    return not await braked(swarm)


if __name__ == "__main__":
    main()

"""Thirty simulated agents: the way that `bench/nodes.py` goes with a thousand, so that it can still be gone."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from weft_testing.story import MeshUnderTest
from weft_testing.swarm import Agent, Swarm, each, wait_until

SIMULATED = {"source": {"kind": "simulated"}, "engine": "simulated", "strategy": "spread"}
COUNT, REPLICAS = 30, 15


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshUnderTest]:
    mesh = MeshUnderTest(tmp_path_factory.mktemp("many"), WEFT_START_GRACE="1")
    mesh.up("--no-model")
    try:
        yield mesh
    finally:
        mesh.close()


@pytest.mark.slow
@pytest.mark.sabotage("no-brake")
def test_thirty_agents_join_the_brake_holds_for_twelve_and_what_one_carried_moves(mesh: MeshUnderTest) -> None:
    asyncio.run(lives(mesh))


async def lives(mesh: MeshUnderTest) -> None:
    swarm = Swarm(mesh.url, COUNT, swarm="yes")
    try:
        # given thirty nodes that joined by the real way, and replicas on half of them
        await swarm.join()
        await wait_until("all are healthy", lambda: are(swarm, swarm.agents, "healthy"), 60)
        spec = SIMULATED | {"selector": {"swarm": "yes"}, "min_replicas": REPLICAS, "max_replicas": REPLICAS}
        (await swarm.http.post(f"{mesh.url}/api/models", json={"name": "carried", "spec": spec})).raise_for_status()
        await wait_until("all are ready", lambda: serve(swarm, set()), 60)
        first = {replica for agent in swarm.agents for replica in agent.running}
        # when twelve die at once
        head = mesh.status()["log"]["position"]
        lost = swarm.agents[:12]
        await swarm.die(lost)
        await wait_until("the brake is set", lambda: braked(swarm, True), 30)
        await asyncio.sleep(10)
        # then they are unhealthy, and nothing is replaced
        facts = [fact["type"] for event in mesh.events(head) for fact in event["facts"]]
        assert (12, 1) == (facts.count("unhealthy"), facts.count("brake_set"))
        assert not {"offline", "scaled", "assigned", "unassigned"} & set(facts)
        # and when they return the brake is lifted
        await each(lost, Agent.start)
        await wait_until("the brake is lifted", lambda: braked(swarm, False), 60)
        await wait_until("all are healthy", lambda: are(swarm, swarm.agents, "healthy"), 60)
        await wait_until("the same replicas serve", lambda: serve(swarm, set()), 30)
        assert first == {replica for agent in swarm.agents for replica in agent.running}
        # and what a single one carried moves
        (dying,) = [agent for agent in swarm.agents if agent.running][:1]
        carried = set(dying.running)
        await swarm.die([dying])
        await wait_until("it is offline", lambda: are(swarm, [dying], "offline"), 60)
        await wait_until("its replica moved", lambda: serve(swarm, carried), 60)
    finally:
        await swarm.close()


async def status(swarm: Swarm) -> dict[str, Any]:
    return (await swarm.http.get(f"{swarm.url}/api/status")).raise_for_status().json()


async def are(swarm: Swarm, agents: list[Agent], state: str) -> bool:
    states = await swarm.states()
    return all(states.get(agent.id) == state for agent in agents)


async def serve(swarm: Swarm, without: set[Any]) -> bool:
    """As many replicas as are wanted are ready, without these."""
    replicas = (await status(swarm))["replicas"]
    return len([r for r in replicas if r["state"] == "ready" and r["id"] not in without]) >= REPLICAS


async def braked(swarm: Swarm, expected: bool) -> bool:
    return ((await status(swarm))["mesh"]["brake"] is not None) == expected

"""Every fold, thrown away and made again from the log, is equal to what it was; the tables too."""

from pathlib import Path
from typing import Any

import pytest
from weft_contracts.catalogue import SERVICES
from weft_testing.story import MeshUnderTest, until

LISTS = ["nodes", "models", "replicas", "requests"]


def projection(mesh: MeshUnderTest, service: str) -> dict[str, Any]:
    """What a service says of its fold: position and digest."""
    answer = mesh.http.get(f"http://127.0.0.1:{mesh.part(service)['port']}/projections")
    answer.raise_for_status()
    return answer.json()[0]


def lists(mesh: MeshUnderTest) -> dict[str, Any]:
    """The lists that people page through, from the tables."""
    found: dict[str, Any] = {}
    for name in LISTS:
        answer = mesh.http.get(f"{mesh.url}/api/{name}")
        answer.raise_for_status()
        found[name] = answer.json()["items"]
    return found


def at_rest(mesh: MeshUnderTest) -> int:
    """The position at which every fold and the tables stand."""

    def same() -> int | None:
        head = mesh.status()["log"]["position"]
        tables = mesh.status()["tables"]["position"]
        return head if {head} == {tables, *(projection(mesh, each)["position"] for each in SERVICES)} else None

    return until("every fold is at the log's end", same, 30)


@pytest.mark.slow
@pytest.mark.sabotage("unfolded-time")
def test_every_fold_made_again_equals_what_it_was(tmp_path: Path) -> None:
    # Two workers share the machine, and neither tells what others use of its memory: the log would never stand still
    # beside programs that take and give back much.
    with MeshUnderTest(tmp_path, workers=2) as mesh:
        # given a mesh that has lived: a model came and went, another failed, one could not be placed
        simulated = {"source": {"kind": "simulated"}, "engine": "simulated"}
        mesh.deploy("gone", simulated).raise_for_status()
        until("it serves", lambda: mesh.ready_replicas("gone"), 60)
        mesh.http.delete(f"{mesh.url}/api/models/gone").raise_for_status()
        mesh.deploy("whale", {**simulated, "engine_args": {"memory_bytes": 1 << 50}}).raise_for_status()
        until("it is unplaceable", lambda: mesh.facts("replica", "unplaceable"))
        until("the deleted model's run has stopped", lambda: mesh.facts("run", "stopped"), 60)
        for _ in range(4):  # more may be said meanwhile, of a node not heard: then again
            before_at = at_rest(mesh)
            before = {each: projection(mesh, each)["digest"] for each in SERVICES}
            tables = lists(mesh)
            # when every service's memory and the tables are thrown away
            throw_away(mesh)
            # then all are as before, by the log alone
            assert {0} == {projection(mesh, each)["snapshots"]["start"] for each in SERVICES}
            if before_at == at_rest(mesh):
                assert before == {each: projection(mesh, each)["digest"] for each in SERVICES}
                assert tables == lists(mesh)
                return
        raise AssertionError("the log never stood still")


def throw_away(mesh: MeshUnderTest) -> None:
    """Kill every service's process, then drop the tables and the gateway's process too."""
    for each in SERVICES:
        pid = mesh.kill(each)
        until(f"{each} is back", lambda each=each, pid=pid: mesh.part(each)["pid"] not in (None, pid), 30)
    for each in SERVICES:
        until(f"{each} is ready", lambda each=each: mesh.part(each)["state"] == "ready", 60)
    drop_tables(mesh)
    pid = mesh.kill("gateway")
    until("the gateway is back", lambda: mesh.part("gateway")["pid"] not in (None, pid), 30)
    until("the gateway is ready", lambda: mesh.part("gateway")["state"] == "ready", 60)


def drop_tables(mesh: MeshUnderTest) -> None:
    """Throw the gateway's tables away, as an operator could."""
    import asyncio

    import asyncpg

    async def drop() -> None:
        url = until("Postgres has a socket", lambda: socket_url(mesh))
        connection: Any = await asyncpg.connect(url)
        try:
            rows = await connection.fetch("select tablename from pg_tables where schemaname = current_schema()")
            assert len(rows) >= len(LISTS)
            for row in rows:
                await connection.execute(f'drop table "{row["tablename"]}" cascade')
        finally:
            await connection.close()

    asyncio.run(drop())


def socket_url(mesh: MeshUnderTest) -> str | None:
    """Postgres' URL as the gateway got it."""
    environ = Path(f"/proc/{mesh.pid('gateway')}/environ").read_bytes().decode().split("\0")
    return next((each.partition("=")[2] for each in environ if each.startswith("WEFT_POSTGRES_URL=")), None)

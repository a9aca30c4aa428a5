"""What `/healthz` answers: a supervisor that restarts by it goes by the process alone."""

from typing import Any

import httpx
import pytest
from weft_runtime import web
from weft_runtime.health import Health


async def healthz(health: Health) -> tuple[int, dict[str, Any]]:
    transport = httpx.ASGITransport(web.app(health))
    async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
        said = await client.get("/healthz")
    return said.status_code, said.json()


@pytest.mark.parametrize("part", ["suspect", "floods"])
async def test_what_a_worker_says_is_told_and_restarts_nobody(part: str) -> None:
    health = Health()
    health.set(part, "run.n-1.m-1-1: unreadable", own=False)
    status, said = await healthz(health)
    assert (200, "degraded", {part: "run.n-1.m-1-1: unreadable"}) == (status, said["status"], said["problems"])
    health.set(part, None, own=False)
    assert (200, {"status": "ok", "problems": {}}) == await healthz(health)


async def test_a_problem_of_the_process_itself_is_one_until_it_is_over() -> None:
    health = Health()
    health.set("projection", "a hole in the log")
    health.set("suspect", "run.n-1.m-1-1: unreadable", own=False)
    status, said = await healthz(health)
    assert (503, "unhealthy", 2) == (status, said["status"], len(said["problems"]))
    health.set("projection", None)
    assert 200 == (await healthz(health))[0]

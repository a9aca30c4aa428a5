"""What takes long at the gateway lets others have their turn."""

import asyncio
from collections.abc import Generator

from weft_gateway.inbound.admin.turns import in_turns

STEPS = 3


async def test_others_have_their_turn_between_any_two_steps() -> None:
    said: list[str] = []

    def steps() -> Generator[None, None, str]:
        for number in range(STEPS):
            said.append(f"step {number}")
            yield
        return "done"

    async def another() -> None:
        for number in range(STEPS):
            said.append(f"another {number}")
            await asyncio.sleep(0)

    beside = asyncio.create_task(another())
    assert "done" == await in_turns(steps())
    await beside
    assert [f"{who} {number}" for number in range(STEPS) for who in ("step", "another")] == said

"""A change that is asked for while the log has no room: refused by name, with what the disk has."""

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from weft_contracts import disk
from weft_contracts.facts.request import CordonRequested
from weft_contracts.ids import NodeId, RequestId
from weft_eventlog import LogUnavailable
from weft_eventlog.errors import LogFull
from weft_gateway.domain.refused import Refused
from weft_gateway.outbound.changes import Changes
from weft_gateway.outbound.log_space import LogSpace

STORE = Path("/state/nats")
Free = Callable[[int], None]


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> Free:
    """Set what the server's disk has."""

    def set_(count: int) -> None:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=count))  # pyright: ignore

    return set_


async def _refused(room: LogSpace, error: Exception) -> Refused:
    """What a caller hears whose commit the log answers so."""

    async def append(*_: object, **__: object) -> None:
        raise error

    log: Any = SimpleNamespace(acting_as=lambda _: SimpleNamespace(append=append))  # pyright: ignore
    fact = CordonRequested(node=NodeId("n-a"))
    with pytest.raises(Refused) as refused:
        await Changes(log, lambda: True, room).ask(RequestId("r-1"), fact, "c", actor="somebody")
    return refused.value


async def test_a_full_disk_is_named_whether_the_server_refuses_or_fails_at_the_write(free: Free) -> None:
    free(3 << 20)
    room = LogSpace(STORE, lambda: 7)
    for error in (LogFull("the log refuses new facts"), LogUnavailable("nothing came")):
        said = await _refused(room, error)
        assert (503, "log_full") == (said.status, said.code)
        assert "less than 64 MiB free, and 3 MiB are" in said.sentence
    assert "/state/nats is full" in (room.problem() or "")


async def test_a_disk_that_has_room_again_is_no_trouble(free: Free) -> None:
    room = LogSpace(STORE, lambda: 7)
    free(3 << 20)
    assert room.problem() is not None
    free(disk.KEPT_FREE)
    assert room.problem() is None
    assert "log_away" == (await _refused(room, LogUnavailable("nothing came"))).code


async def test_a_server_elsewhere_that_refuses_is_a_trouble_until_the_log_grows() -> None:
    position = [7]
    room = LogSpace(None, lambda: position[0])
    assert room.problem() is None
    said = await _refused(room, LogFull("the log refuses new facts: maximum bytes exceeded"))
    assert "maximum bytes exceeded" in said.sentence
    assert "maximum bytes exceeded" in (room.problem() or "")
    position[0] = 8
    assert room.problem() is None

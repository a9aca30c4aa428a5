"""What a client says for its own books reaches the log by a setting alone, and nothing but the log."""

from typing import Any

from structlog.testing import capture_logs

Fronts = Any
SAID = {"metadata": {"run": "7"}, "user": "ann", "service_tier": "auto"}
CHAT: dict[str, Any] = {"model": "sim", "messages": [{"role": "user", "content": "hi", "name": "ann"}]} | SAID


async def line_of(fronts: Fronts, noting: bytes | None) -> dict[str, Any]:
    """The log line of one answered request, which the answer's tier is held against too."""
    front = await fronts.open(noting=noting)
    front.dispatcher._request_log = True
    replica = await front.a_replica()
    wire = await fronts.connect(front)
    with capture_logs() as lines:
        for stream in (False, True):
            wire.post(CHAT | {"stream": stream})
            await replica.engine.has(1)
            replica.engine.step("x")
            replica.engine.finish_all()
            answer = await wire.answer()
            parts = answer.events[:-1] if stream else [answer.json()]
            assert {"default"} == {part["service_tier"] for part in parts}
    assert "ann" == replica.engine.submits[-1].chat.messages[0].name
    return dict(next(line for line in lines if line["event"] == "request"))


async def test_nothing_of_it_is_noted_unless_a_setting_says_so(fronts: Fronts) -> None:
    line = await line_of(fronts, None)
    assert not {"metadata.run", "user"} & set(line)
    line = await line_of(fronts, b"k" * 32)
    assert "7" == line["metadata.run"]
    assert 32 == len(line["user"])
    assert "ann" not in str(line)

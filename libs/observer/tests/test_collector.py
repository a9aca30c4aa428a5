"""What an export does with facts that OpenTelemetry's form can't bear. A worker writes some of their parts."""

from collections.abc import AsyncIterator

import pytest
from weft_contracts.facts.fact import Fact
from weft_observer import Happened, Later, Refused
from weft_observer.otlp.collector import Collector
from weft_observer.otlp.record import record
from weft_observer.otlp.settings import OtlpSettings
from weft_servers.port import choose

from .given import FAILED, SPAN, TRACE, commit


@pytest.fixture
async def collector() -> AsyncIterator[Collector]:
    """Nobody listens there."""
    settings = OtlpSettings(otlp_endpoint=f"http://127.0.0.1:{choose()[0]}", otlp_timeout=0.1)
    made = Collector(settings, "press")
    yield made
    await made.close()


@pytest.mark.parametrize(
    "traceparent",
    [
        f"00-{'f' * 40}-{SPAN}-01",
        f"00-{TRACE}-{SPAN * 2}-01",
        f"00--{TRACE}-{SPAN}-01",
        f"00-+{TRACE[1:]}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-fff",
        "",
    ],
)
async def test_a_trace_parent_that_is_none_is_left_out(traceparent: str, collector: Collector) -> None:
    happened = Happened(FAILED, commit(FAILED, traceparent=traceparent), 0)
    assert (0, 0) == (record(happened).trace_id, record(happened).span_id)
    with pytest.raises(Later):  # it was sent, and nobody was there
        await collector.export(happened)


@pytest.mark.parametrize("starts", [2**63 - 1, 2**64])
async def test_a_number_that_no_record_bears_is_refused_at_once(starts: int, collector: Collector) -> None:
    fact: Fact = FAILED.model_copy(update={"starts": starts})
    with pytest.raises(Refused if starts >= 2**63 else Later):
        await collector.export(Happened(fact, commit(fact), 0))

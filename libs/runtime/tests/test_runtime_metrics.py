"""`/metrics` of any service: written in pieces, and what a process tells of itself."""

import asyncio
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from weft_runtime.health import Health
from weft_runtime.metrics_page import LINES_AT_ONCE, metrics_page
from weft_runtime.service_metrics import ServiceMetrics


class Fold:
    """As much of a projection as is told."""

    name, position, behind = "registry", 40, 2

    def __init__(self) -> None:
        self.halted: str | None = None
        self.suspects: dict[str, str] = {}


def told(collector: ServiceMetrics, name: str, **labels: str) -> float | None:
    registry = CollectorRegistry()
    registry.register(collector)
    return registry.get_sample_value(name, labels)


async def test_the_page_is_what_the_library_writes_and_others_get_a_turn_while_it_is_written() -> None:
    registry = CollectorRegistry()
    many = Gauge("many", 'of "many" \\ and\nmore', ["number"], registry=registry)
    for number in range(3 * LINES_AT_ONCE + 1):
        many.labels(f'{number}"').set(number)
    Counter("counted", "some", registry=registry).inc()
    Histogram("took", "seconds", registry=registry).observe(0.3)
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(others())
    page = await metrics_page(registry)
    task.cancel()
    assert generate_latest(registry) == page
    assert turns >= 6  # four pieces of the first, one of each other


async def test_nothing_tells_when_a_counter_was_born() -> None:
    registry = CollectorRegistry()
    Counter("counted", "some", registry=registry).inc()
    assert b"_created" not in await metrics_page(registry)


def test_a_process_tells_whose_its_problems_are_and_whether_it_can_work() -> None:
    health = Health()
    metrics = ServiceMetrics("registry", health, lambda: True)
    assert 0 == told(metrics, "weft_service_ready")
    health.set_ready("log", True)
    health.set("projection", "a hole in the log")
    health.set("suspect", "run.n-1.m-1-1: unreadable", own=False)
    health.set("floods", "n-1 floods", own=False)
    assert (1, 1, 2) == (
        told(metrics, "weft_service_ready"),
        told(metrics, "weft_service_problems", whose="own"),
        told(metrics, "weft_service_problems", whose="mesh"),
    )
    assert 1 == told(metrics, "weft_log_connected")


def test_a_fold_tells_how_far_it_is_and_what_keeps_it_from_being_decided_from() -> None:
    fold: Any = Fold()
    metrics = ServiceMetrics("registry", Health(), lambda: False, lambda: 3, lambda: [fold])
    named = {"fold": "registry"}
    assert (40, 2, 0, 0) == tuple(
        told(metrics, f"weft_fold_{each}", **named) for each in ("position", "behind", "halted", "suspects")
    )
    fold.halted, fold.suspects = "it was rewound", {"node.n-1": "unreadable"}
    assert (1, 1) == tuple(told(metrics, f"weft_fold_{each}", **named) for each in ("halted", "suspects"))
    assert (0, 3) == (told(metrics, "weft_log_connected"), told(metrics, "weft_log_reconnects_total"))


def test_only_a_service_that_can_lead_says_whether_it_does() -> None:
    leadership: Any = type("Stand", (), {"held": True})()
    assert told(ServiceMetrics("gateway", Health(), lambda: True), "weft_service_leads") is None
    leads = ServiceMetrics("registry", Health(), lambda: True, leadership=lambda: leadership)
    assert 1 == told(leads, "weft_service_leads")
    leadership.held = False
    assert 0 == told(leads, "weft_service_leads")

"""A service in small, for the tests of a service's life: `python small_service.py BEHAVIOUR`."""

import asyncio
import logging
import sys
from collections.abc import Sequence
from typing import Any

import structlog
from weft_contracts import subjects
from weft_contracts.commit import Cause, Commit, Decision, Guard, Recorded
from weft_contracts.facts.inspection import Requested
from weft_contracts.ids import CorrelationId, InspectionId, NodeId
from weft_eventlog import Projection
from weft_runtime.logs import get_logger
from weft_runtime.service import Runtime, serve
from weft_runtime.settings import ServiceSettings

_log: Any = get_logger("small")


def fold(_: Sequence[Recorded]) -> None:
    """Keep nothing."""


async def doomed() -> None:
    secret = "do not tell"
    with structlog.contextvars.bound_contextvars(correlation_id="c-1"):
        _log.info("says", length=len(secret))
    logging.getLogger("a library").warning("warns of %s", "something")
    raise RuntimeError("cannot go on")


async def never() -> None:
    await asyncio.Event().wait()


async def traced(runtime: Runtime) -> None:
    """Decide once, for an event of the trace that the command line names, and tell what the log then holds."""
    aggregate = subjects.inspection(NodeId("n-a"), InspectionId("i-1"))
    cause = Cause(CorrelationId("c-traced"), None, sys.argv[2])
    fact = Requested(source="path:/m", engine="simulated")
    decision = Decision((Commit(aggregate, (fact,), Guard(aggregate, 0), cause),), "asked")
    found: list[Recorded] = []
    projection = Projection(runtime.log, name="traced", fold=found.extend)
    await runtime.decide(projection, lambda now, seed: [] if found else [decision])
    while not found:
        await asyncio.sleep(0.05)
    _log.info("appended", traceparent=found[0].traceparent)
    await never()


async def start(runtime: Runtime) -> None:
    runtime.follow(Projection(runtime.log, name="small", fold=fold))
    match sys.argv[1]:
        case "calm":
            pass
        case "doomed":
            runtime.spawn("doomed", doomed())
        case "short":
            runtime.spawn("short", asyncio.sleep(0.1))
        case "greedy":
            await runtime.client.publish("weft.ev.node.n-a.approved", b"[]")
        case "stubborn":
            runtime.on_stop("stubborn", never, 600)
        case "hears":

            @runtime.broker.subscriber("weft.ev.inspection.>", no_reply=True)
            async def _(facts: list[dict[str, Any]]) -> None:
                _log.info("heard", types=[fact["type"] for fact in facts])

            runtime.spawn("traced", traced(runtime))
        case "traced":
            runtime.spawn("traced", traced(runtime))
        case other:
            raise AssertionError(other)


if __name__ == "__main__":
    raise SystemExit(serve("reconciler", ServiceSettings(), start))

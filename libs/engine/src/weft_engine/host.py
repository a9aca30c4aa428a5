"""One replica's process, from its launch to its exit code."""

import asyncio
import logging
import os
import time
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from weft_contracts.gen import session_pb2 as pb
from weft_contracts.ids import NodeId
from weft_dataplane import Engine, EngineServicer, HostLife, Identity, LoadFailed, make_server
from weft_dataplane.tls import Admission, Certificates

from weft_engine.adapters import load_engine
from weft_engine.announcer import Announcer
from weft_engine.canary import CanaryFailed, Watchdog, ask
from weft_engine.exit_codes import OTHER_FAILURE, PERMANENT_FAILURE
from weft_engine.launch import Launch
from weft_engine.shutdown import Shutdown, ShutdownTriggers
from weft_engine.traced import ENDPOINT, traced

STOP_SERVER_S: Final = 1.0
CLOSE_ENGINE_S: Final = 5.0
STILL_S: Final = 5.0
"""An engine that stood still for so long when its requests are cut off has failed them."""
TELL_S: Final = 1.0
"""How long gateways have to take the last word about what was cut off."""

log = logging.getLogger("weft.engine")


async def run_host(launch: Launch, lifeline: int | None, announcer: Announcer) -> int:
    """Load the engine, serve it until something ends it, and answer the exit code.

    0 retired or told to stop, 3 a failure that another try would meet again, 1 anything else.
    """
    life = HostLife(Identity(launch.replica, launch.incarnation, launch.revision_digest, launch.rank))
    triggers = ShutdownTriggers()
    triggers.on_signals(launch.stop_within_s, supervised=lifeline is not None)
    if lifeline is not None:
        triggers.on_lifeline(lifeline)
    triggers.on_silence(life, launch.without_agent_s)
    triggers.on_retire(life, launch.retire_within_s)
    announcer.say("starting")
    certificates = Certificates(Path(launch.tls_folder)) if launch.tls_folder is not None else None
    admission = Admission(NodeId(launch.node)) if certificates is not None else None
    servicer = EngineServicer(life, admission=admission)
    try:
        credentials = certificates.server() if certificates is not None else None
        server, port = make_server(servicer, launch.host, launch.port, credentials)
        await server.start()
    except OSError as error:
        announcer.failed(str(error), permanent=False)
        return OTHER_FAILURE
    beat = asyncio.create_task(servicer.beat(), name="beat")
    engine: Engine | None = None
    watching: list[asyncio.Task[None]] = []
    try:
        announcer.say("loading", port=port)
        life.move(pb.PHASE_LOADING)
        ready = await load_or_end(launch, triggers)
        if isinstance(ready, Shutdown):
            return ready.exit_code
        engine = ready
        watchdog = Watchdog(engine, life, launch.canary_after_s)
        watching.append(asyncio.create_task(watchdog.run(), name="watchdog"))
        engine = traced(engine, launch, os.environ.get(ENDPOINT))
        servicer.attach(engine)
        life.move(pb.PHASE_READY)
        facts = engine.facts
        announcer.say("ready", port=port, engine=facts.name, engine_version=facts.version)
        log.info("ready", extra={"port": port, "engine": facts.name, "engine_version": facts.version})
        if isinstance(ready, MayDie):
            watching.append(asyncio.create_task(watch(ready, life, triggers, announcer), name="engine-death"))
        shutdown = await triggers.wait()
        life.retire()
        if unfinished := await finish_requests(servicer, triggers, shutdown, watchdog):
            announcer.say("ending", unfinished=unfinished)
        return shutdown.exit_code
    except LoadFailed as failed:
        life.move(pb.PHASE_FAILED, failed.sentence, permanent=failed.permanent)
        announcer.failed(failed.sentence, permanent=failed.permanent, outside=failed.outside)
        log.error("load failed", extra={"reason": failed.sentence, "permanent": failed.permanent})
        return PERMANENT_FAILURE if failed.permanent else OTHER_FAILURE
    finally:
        beat.cancel()
        for task in watching:
            task.cancel()
        await server.stop(STOP_SERVER_S)
        if engine is not None:
            await close_engine(engine)


@runtime_checkable
class MayDie(Protocol):
    """An engine with processes of its own, which may end without the host's."""

    async def died(self) -> str:
        """Wait until they are gone; answers one sentence."""
        ...


async def watch(engine: MayDie, life: HostLife, triggers: ShutdownTriggers, announcer: Announcer) -> None:
    """End the host as crashed when the engine's own processes are gone."""
    sentence = await engine.died()
    life.move(pb.PHASE_FAILED, sentence)
    announcer.failed(sentence, permanent=False)
    triggers.end(Shutdown(sentence, OTHER_FAILURE, 0))


async def load_or_end(launch: Launch, triggers: ShutdownTriggers) -> Engine | Shutdown:
    """The loaded engine, or what ended the host before. Raises LoadFailed."""
    started = time.monotonic()
    loading = asyncio.create_task(load_and_ask(launch), name="load")
    ended = asyncio.create_task(triggers.wait(), name="shutdown")
    try:
        await asyncio.wait((loading, ended), return_when=asyncio.FIRST_COMPLETED)
        if loading.done():
            engine = loading.result()
            log.info("loaded", extra={"seconds": round(time.monotonic() - started, 3)})
            return engine
        return ended.result()
    finally:
        loading.cancel()
        ended.cancel()


async def load_and_ask(launch: Launch) -> Engine:
    """The engine after its first token. Raises LoadFailed."""
    engine = await load_engine(launch)
    try:
        await ask(engine)
    except BaseException as error:
        await close_engine(engine)
        if isinstance(error, CanaryFailed):
            raise LoadFailed(f"the engine loaded and gave no first token: {error}", permanent=False) from None
        raise
    return engine


async def finish_requests(
    servicer: EngineServicer, triggers: ShutdownTriggers, shutdown: Shutdown, watchdog: Watchdog
) -> int:
    """Let running requests go on, within the shutdown's bound or until that is cut short. How many are left then."""
    loop = asyncio.get_running_loop()
    until = loop.time() + shutdown.finish_within_s
    while servicer.running and loop.time() < until:
        try:
            await asyncio.wait_for(triggers.hurry.wait(), 0.05)
            break
        except TimeoutError:
            continue
    unfinished = servicer.running
    if unfinished:
        log.warning("requests cut off", extra={"requests": unfinished})
        replica, still_s = servicer.life.identity.replica, watchdog.still_s
        if still_s >= STILL_S:
            servicer.give_up(f"the engine of replica {replica} made no step for {still_s:.0f} s", pb.FAULT_ENGINE)
        else:
            servicer.give_up(f"replica {replica} ends, and the request was not done in time")
        told_until = loop.time() + TELL_S
        while servicer.running and loop.time() < told_until:
            await asyncio.sleep(0.01)
    return unfinished


async def close_engine(engine: Engine) -> None:
    """Close the engine, within a bound."""
    try:
        await asyncio.wait_for(engine.close(), CLOSE_ENGINE_S)
    except TimeoutError:
        log.warning("engine did not close", extra={"seconds": CLOSE_ENGINE_S})
    except Exception:
        log.exception("engine did not close")

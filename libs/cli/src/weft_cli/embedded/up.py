"""`weft up`: brings an embedded mesh up, keeps it up, and takes it down in order."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from weft_contracts import certificates
from weft_servers import state_lock

from weft_cli.client import Gateway
from weft_cli.embedded import builtin, entry, join_line, logs, outside, ports, prerequisites, run_file, worker_count
from weft_cli.embedded import reach as reaching
from weft_cli.embedded.launcher import Options
from weft_cli.embedded.mesh import SERVICES, Plan, port_names, stop_order
from weft_cli.embedded.state import State
from weft_cli.embedded.supervisor import Part, Supervised
from weft_cli.embedded.trust import Founding, admin_key, join_secret
from weft_cli.embedded.voice import Voice
from weft_cli.failure import Exit, Failure

_PART_READY_S = 90.0
"""A part that isn't ready by then makes the start fail."""
_LEFTOVERS_S = 60.0
"""What a killed launcher left behind has so long to end."""
_HURRIED_GRACE_S = 1.0
_TIDY_S = 60.0


class Mesh:
    """The parts under supervision."""

    def __init__(self, plan: Plan, voice: Voice, record: run_file.RunFile) -> None:
        self.plan = plan
        self._voice = voice
        self._record = record
        self._supervised: dict[str, Supervised] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._loop = asyncio.get_running_loop()
        self._postgres_url: asyncio.Future[str] = self._loop.create_future()
        self._founded = asyncio.Event()
        self._hurry = asyncio.Event()

    async def start(self) -> None:
        """Start everything. Returns when all parts are ready; raises Failure with the first that isn't in time."""
        elsewhere = self.plan.outside
        if elsewhere.postgres is not None:
            self._postgres_url.set_result(elsewhere.postgres)
        else:
            self._watch(self.plan.postgres(self._know_postgres))
        gateway = asyncio.create_task(self._start_gateway())
        try:
            reach = self.plan.reach
            names = reach.names() if reach.tls else None
            async with Founding(self.plan.state, names, outside=elsewhere.nats is not None) as founding:
                keys = await founding.keys()
                nats = self._watch(self.plan.nats(keys.operator)) if elsewhere.nats is None else None
                self._founded.set()
                self._watch(self.plan.service("registry"))
                if nats is not None:
                    await self._ready(nats)
                await founding.declare(self.plan.nats_url)
            for number in range(1, self.plan.workers + 1):
                self._watch(self.plan.worker(number, keys.authority))
            for name in SERVICES:
                if name not in ("registry", "gateway"):
                    self._watch(self.plan.service(name))
            await gateway
        finally:
            gateway.cancel()
            await asyncio.wait([gateway])
        await asyncio.gather(*(self._ready(each) for each in self._supervised.values()))
        self.note("ready")

    async def _start_gateway(self) -> None:
        """It needs its database's address and its credentials, and nothing else has to wait for these two."""
        if (postgres := self._supervised.get("postgres")) is not None:
            await self._ready(postgres)
        url = await self._postgres_url
        await self._founded.wait()
        self._watch(self.plan.service("gateway", WEFT_POSTGRES_URL=url))

    async def stop(self) -> None:
        """End everything in order, each part in bounded time."""
        self.note("stopping")
        for group in stop_order(list(self._supervised)):
            await self._bounded_by_hurry([self._supervised[name] for name in group])
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def hurry(self) -> None:
        """Stop waiting for what ends slowly."""
        self._hurry.set()

    async def keep_logs_small(self) -> None:
        """Look after the services' logs for ever."""
        while True:
            await asyncio.sleep(_TIDY_S)
            for each in self._supervised.values():
                if each.name not in ("nats", "postgres"):  # these have their own way
                    await asyncio.to_thread(logs.keep_small, each.part.log)

    def note(self, stage: str | None = None) -> None:
        """Bring the run file up to date."""
        rows = tuple(each.row() for each in self._supervised.values())
        self._record = replace(self._record, parts=rows, stage=stage or self._record.stage)
        self._record.write(self.plan.state)

    def _watch(self, part: Part) -> Supervised:
        supervised = Supervised(replace(part, held=self.plan.state.held(part.name).exists), self._on_change)
        self._supervised[part.name] = supervised
        self._tasks[part.name] = asyncio.create_task(supervised.run(), name=part.name)
        return supervised

    def _on_change(self, part: Supervised, what: str) -> None:
        if what:
            self._voice.part(part.name, what)
        self.note()

    async def _ready(self, part: Supervised) -> None:
        """Wait until a part is ready for the first time; not to the end where it clearly won't be."""
        ready, hopeless = (asyncio.create_task(event.wait()) for event in (part.ready, part.hopeless))
        await asyncio.wait([ready, hopeless], timeout=_PART_READY_S, return_when=asyncio.FIRST_COMPLETED)
        for each in (ready, hopeless):
            each.cancel()
        if not part.ready.is_set():
            when = "" if part.hopeless.is_set() else f" within {_PART_READY_S:g} s"
            raise Failure(f"{part.name} was not ready{when}: {part.problem}{logs.tail(part.part.log)}")

    async def _bounded_by_hurry(self, parts: list[Supervised]) -> None:
        ending = asyncio.gather(*(part.stop() for part in parts))
        hurried = asyncio.create_task(self._hurry.wait())
        await asyncio.wait([ending, hurried], return_when=asyncio.FIRST_COMPLETED)
        if not ending.done():
            await asyncio.gather(*(part.stop(_HURRIED_GRACE_S) for part in parts))
        hurried.cancel()
        await ending

    def _know_postgres(self, url: str) -> None:
        """Called by the thread that starts it, at every start; the first one tells."""

        def tell() -> None:
            if not self._postgres_url.done():
                self._postgres_url.set_result(url)

        self._loop.call_soon_threadsafe(tell)


def run(options: Options, voice: Voice) -> Exit:
    """Bring a mesh up and serve until a signal. Raises nothing: failures are said through `voice`."""
    try:
        prerequisites.check()
        options.state.prepare()
        with take_lock(options.state, voice) as lock:
            workers = worker_count.settled(options)
            reach = reaching.settled(options.state, options.listen, options.certificate, options.key)
            servers = outside.settled(options.state)
            if servers.nats is not None:
                reach = replace(reach, tls=True)  # as those servers do
            settled = ports.settle(
                options.state.ports, port_names(workers), options.port, reach.listen, options.nats_port
            )
            for name in settled.moved:
                voice.line(f"the port of {name} is taken by another process; it has a new one: {settled[name]}")
            secret = join_secret(options.state.join_token)
            own = admin_key(options.state.admin_key)
            plan = Plan(options.state, settled, workers, secret, own, reach, servers, lock.fd)
            lock.record(url=plan.url)
            try:
                return asyncio.run(_serve(options, plan, voice))
            finally:
                options.state.run_file.unlink(missing_ok=True)
    except Failure as e:
        voice.failed(str(e))
        return e.exit


def take_lock(state: State, voice: Voice) -> state_lock.StateLock:
    """Lock the state. Raises Failure that says who holds it."""
    try:
        return state_lock.acquire(state.lock, "weft up")
    except state_lock.Locked as e:
        record = run_file.read(state)
        if record is not None and record.alive():
            raise Failure(
                f"{state.folder} is in use by `weft up` (process {record.pid}, at {record.url});"
                f" stop it (weft down --state {state.folder}), or use another state: --state DIR"
            ) from e
    voice.line("waiting for what an ended launcher left behind to end")
    try:
        return state_lock.acquire(state.lock, "weft up", wait_s=_LEFTOVERS_S)
    except state_lock.Locked as e:
        raise Failure(str(e)) from e


async def _serve(options: Options, plan: Plan, voice: Voice) -> Exit:
    mesh = Mesh(plan, voice, run_file.new(plan.url))
    mesh.note()
    asked_to_stop = asyncio.Event()

    def on_signal() -> None:
        if asked_to_stop.is_set():
            mesh.hurry()
        else:
            voice.line("stopping: running requests finish first (again: at once)")
        asked_to_stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, on_signal)
    if lifeline := os.environ.get("WEFT_LIFELINE_FD"):
        _end_with(int(lifeline), on_signal)
    tidying = asyncio.create_task(mesh.keep_logs_small())
    status = Exit.OK
    try:
        if await _unless(asked_to_stop, lambda: _come_up(options, mesh, voice)):
            voice.started()
            await asked_to_stop.wait()
        else:
            status = Exit.INTERRUPTED
    except Failure as e:
        status = e.exit
        voice.failed(str(e))
    finally:
        tidying.cancel()
        await mesh.stop()
    voice.line("stopped")
    return status


def _end_with(lifeline: int, end: Callable[[], None]) -> None:
    """Call `end` when a pipe that whoever started this launcher holds open closes: tests leave nothing behind."""
    loop = asyncio.get_running_loop()

    def readable() -> None:
        if not os.read(lifeline, 512):
            loop.remove_reader(lifeline)
            end()

    loop.add_reader(lifeline, readable)


async def _come_up(options: Options, mesh: Mesh, voice: Voice) -> None:
    state, url = options.state, mesh.plan.url
    voice.line(f"Weft starts on {state.folder}")
    await mesh.start()
    authority = state.trust / certificates.AUTHORITY if mesh.plan.reach.tls else None
    gateway = Gateway(url, key=mesh.plan.admin_key, timeout_s=30.0, authority=authority)
    deploy = options.deploy and mesh.plan.workers > 0  # else the first other machine has yet to join
    serving = await builtin.serve_something(gateway, state.builtin_deployed, voice, deploy=deploy)
    keys_needed = await asyncio.to_thread(entry.keys_needed, url, authority)
    if not mesh.plan.reach.loopback:
        try:
            await asyncio.to_thread(join_line.keep_token, state, gateway)
        except Failure as e:
            voice.line(f"  other machines get no line to join by: {e}; `weft tokens create` makes one")
    voice.line()
    voice.line(f"Weft serves at {url}")
    if serving:
        voice.line("ask it something:")
        voice.line()
        voice.line(f"  {builtin.curl(url, serving, with_key=keys_needed, authority=authority)}")
        voice.line()
    if keys_needed:
        await asyncio.to_thread(entry.tell, gateway, state.first_key, voice)
    if (line := join_line.line(state, url)) is not None:
        voice.line("on a new machine, then `weft nodes approve NAME` here:")
        voice.line()
        voice.line(f"  {line}")
        voice.line()
    voice.line(f"state: {state.folder}   logs: {state.logs}   stop: Ctrl-C or `weft down`")


async def _unless(stop: asyncio.Event, work: Callable[[], Awaitable[Any]]) -> bool:
    """Whether `work` came to its end before `stop` was set. Raises what it raises."""
    stopping = asyncio.create_task(stop.wait())
    working = asyncio.ensure_future(work())
    await asyncio.wait([stopping, working], return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if working.done():
        working.result()
        return True
    working.cancel()
    with contextlib.suppress(asyncio.CancelledError, Failure):
        await working
    return False

"""A mesh that runs: its parts under supervision, each started when what it needs is there, and ended in order."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from weft_client.failure import Failure

from weft_embedded import logs, maintenance, orders, run_file
from weft_embedded.founding_process import FoundingProcess
from weft_embedded.launcher_output import LauncherOutput
from weft_embedded.mesh_plan import AGENT_ANEW, SERVICES, MeshPlan, stop_order
from weft_embedded.supervisor import Part, SupervisedPart

_PART_READY_S = 90.0
"""A part that isn't ready by then makes the start fail."""
_HURRIED_GRACE_S = 1.0
_TELL_S = 10.0


class Mesh:
    """The parts under supervision."""

    def __init__(self, plan: MeshPlan, output: LauncherOutput, record: run_file.RunFile) -> None:
        self.plan = plan
        self._voice = output
        self._record = record
        self._supervised: dict[str, SupervisedPart] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._renewals: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._postgres_url: asyncio.Future[str] = self._loop.create_future()
        self._founded = asyncio.Event()
        self._hurry = asyncio.Event()
        self._nats_fails: Callable[[], bool] = lambda: False

    async def start(self) -> None:
        """Start everything. Returns when all parts are ready; raises Failure with the first that isn't in time."""
        elsewhere = self.plan.external
        if elsewhere.postgres is not None:
            self._postgres_url.set_result(elsewhere.postgres)
        else:
            self._watch(self.plan.postgres(self._know_postgres))
        gateway = asyncio.create_task(self._start_gateway())
        telling = asyncio.create_task(self._tell_who_is_awaited())
        try:
            address = self.plan.address
            names = address.names() if address.tls else None
            async with FoundingProcess(
                self.plan.state, names, workers=self.plan.workers, external_nats=elsewhere.nats is not None
            ) as founding:
                keys = await founding.keys()
                nats = self._watch(self.plan.nats(keys.operator, self._know_nats)) if elsewhere.nats is None else None
                self._founded.set()
                self._watch(self.plan.service("registry", WEFT_BOOTSTRAP_TOKEN_KEYS=",".join(keys.workers)))
                if nats is not None:
                    await self._ready(nats)
                await founding.declare(self.plan.nats_url)
            for number in range(1, self.plan.workers + 1):
                self._watch(self.plan.worker(number, keys.authority))
            for name in SERVICES:
                if name not in ("registry", "gateway"):
                    self._watch(self.plan.service(name))
            await gateway
            await asyncio.gather(*(self._ready(each) for each in self._supervised.values()))
        finally:
            telling.cancel()
            gateway.cancel()
            await asyncio.wait([gateway])
        self.note("ready")

    async def _tell_who_is_awaited(self) -> None:
        """Say now and then who isn't ready yet: a slow start is no silent one."""
        while True:
            await asyncio.sleep(_TELL_S)
            late = [name for name, each in self._supervised.items() if not each.ready.is_set()]
            self._voice.line(f"  still starting: {', '.join(late) or 'what comes first'}")

    async def _start_gateway(self) -> None:
        """It needs its database's address and its credentials, and nothing else has to wait for these two."""
        if (postgres := self._supervised.get("postgres")) is not None:
            await self._ready(postgres)
        url = await self._postgres_url
        await self._founded.wait()
        self._watch(self.plan.service("gateway", WEFT_POSTGRES_URL=url))

    async def stop(self) -> None:
        """End everything in order, each part in bounded time. One that can't be ended keeps no other."""
        self.note("stopping")
        for group in stop_order(list(self._supervised)):
            await self._bounded_by_hurry([self._supervised[name] for name in group])
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def hurry(self) -> None:
        """Stop waiting for what ends slowly."""
        self._hurry.set()

    def obey(self, word: str, name: str) -> None:
        """Do what whoever holds the lifeline wants (`orders`): start a part anew, or a worker's agent."""
        part = self._supervised.get(name)
        if part is None or word not in (orders.ANEW, orders.ANEW_AGENT):
            self._voice.line(f"  an order that can't be followed: {word} {name}")
        elif word == orders.ANEW:
            task = asyncio.create_task(part.renew(), name=f"{name} anew")
            self._renewals.add(task)
            task.add_done_callback(self._renewals.discard)
        else:
            part.signal(AGENT_ANEW)

    def kill(self) -> None:
        """End every process by force, without waiting for that."""
        for each in list(self._supervised.values()):
            each.kill()

    async def maintain(self) -> None:
        """Look after logs and the NATS server's disk for ever."""

        def own_logs() -> list[Path]:  # the servers have their own way
            return [each.part.log for name, each in self._supervised.items() if name not in ("nats", "postgres")]

        async def renew() -> None:
            self._voice.line("  a write of NATS had failed, and its disk has room again: it is started anew")
            await self._supervised["nats"].renew()

        nats = maintenance.restart_nats(self.plan.state.folder, lambda: self._nats_fails(), renew)
        await asyncio.gather(maintenance.rotate_logs(own_logs), nats)

    def note(self, stage: str | None = None) -> None:
        """Bring the run file up to date."""
        rows = tuple(each.row() for each in self._supervised.values())
        self._record = replace(self._record, parts=rows, stage=stage or self._record.stage)
        with contextlib.suppress(OSError):  # a full disk keeps nothing from going on, nor from ending
            self._record.write(self.plan.state)

    def _watch(self, part: Part) -> SupervisedPart:
        supervised = SupervisedPart(replace(part, held=self.plan.state.held(part.name).exists), self._on_change)
        self._supervised[part.name] = supervised
        self._tasks[part.name] = asyncio.create_task(supervised.run(), name=part.name)
        return supervised

    def _on_change(self, part: SupervisedPart, what: str) -> None:
        if what:
            self._voice.part(part.name, what)
        self.note()

    async def _ready(self, part: SupervisedPart) -> None:
        """Wait until a part is ready for the first time; not to the end where it clearly won't be."""
        ready, hopeless = (asyncio.create_task(event.wait()) for event in (part.ready, part.hopeless))
        await asyncio.wait([ready, hopeless], timeout=_PART_READY_S, return_when=asyncio.FIRST_COMPLETED)
        for each in (ready, hopeless):
            each.cancel()
        if not part.ready.is_set():
            when = "" if part.hopeless.is_set() else f" within {_PART_READY_S:g} s"
            raise Failure(f"{part.name} was not ready{when}: {part.problem}{logs.tail(part.part.log)}")

    async def _bounded_by_hurry(self, parts: list[SupervisedPart]) -> None:
        stopping = asyncio.gather(*(part.stop() for part in parts), return_exceptions=True)
        hurried = asyncio.create_task(self._hurry.wait())
        await asyncio.wait([stopping, hurried], return_when=asyncio.FIRST_COMPLETED)
        if not stopping.done():
            await asyncio.gather(*(part.stop(_HURRIED_GRACE_S) for part in parts), return_exceptions=True)
        hurried.cancel()
        await stopping

    def _know_nats(self, fails: Callable[[], bool]) -> None:
        """Called by the thread that starts it, at every start."""
        self._nats_fails = fails

    def _know_postgres(self, url: str) -> None:
        """Called by the thread that starts it, at every start; the first one tells."""

        def tell() -> None:
            if not self._postgres_url.done():
                self._postgres_url.set_result(url)

        self._loop.call_soon_threadsafe(tell)

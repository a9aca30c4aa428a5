"""`weft up`: brings an embedded mesh up, keeps it up, and takes it down in order."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from weft_client.failure import Exit, Failure
from weft_client.gateway import Gateway
from weft_contracts import certificates
from weft_servers import state_lock

from weft_embedded import (
    builtin,
    external_servers,
    first_admin_key,
    join_line,
    listen_address,
    orders,
    ports,
    prerequisites,
    run_file,
    shutdown,
)
from weft_embedded.bundle import served
from weft_embedded.bundle.contents import BadBundle
from weft_embedded.launcher import Options, workers_wanted
from weft_embedded.launcher_output import LauncherOutput
from weft_embedded.mesh import Mesh
from weft_embedded.mesh_plan import MeshPlan, port_names
from weft_embedded.own_secrets import admin_key, join_secret
from weft_embedded.state import State

_LEFTOVERS_S = 60.0
"""What a killed launcher left behind has so long to end."""
_GIVE_UP_S = 10.0


def run(options: Options, output: LauncherOutput) -> Exit:
    """Bring a mesh up and serve until a signal. Raises nothing: failures are said through `output`."""
    try:
        prerequisites.check()
        options.state.prepare()
        prerequisites.check_disk(options.state)
        with take_lock(options.state, output) as lock:
            workers = workers_wanted(options)
            address = listen_address.chosen(options.state, options.listen, options.certificate, options.key)
            servers = external_servers.chosen(options.state)
            if servers.nats is not None:
                address = replace(address, tls=True)  # as those servers do
            own_ports = ports.chosen(
                options.state.ports, port_names(workers), options.port, address.listen, options.nats_port
            )
            for name in own_ports.moved:
                output.line(f"the port of {name} is taken by another process; it has a new one: {own_ports[name]}")
            secret = join_secret(options.state.join_token)
            own = admin_key(options.state.admin_key)
            plan = MeshPlan(options.state, own_ports, workers, secret, own, address, servers, lock.fd)
            lock.record(url=plan.url)
            try:
                return asyncio.run(_serve(options, plan, output))
            finally:
                options.state.run_file.unlink(missing_ok=True)
    except Failure as e:
        output.failed(str(e))
        return e.exit
    except OSError as e:
        output.failed(_of_the_system(e))
        return Exit.FAILED


def take_lock(state: State, output: LauncherOutput) -> state_lock.StateLock:
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
    output.line("waiting for what an ended launcher left behind to end")
    try:
        return state_lock.acquire(state.lock, "weft up", wait_s=_LEFTOVERS_S)
    except state_lock.Locked as e:
        raise Failure(str(e)) from e


async def _serve(options: Options, plan: MeshPlan, output: LauncherOutput) -> Exit:
    mesh = Mesh(plan, output, run_file.new(plan.url))
    mesh.note()
    asked_to_stop = asyncio.Event()
    kill_timer = shutdown.KillTimer(mesh.kill)

    def on_signal() -> None:
        if asked_to_stop.is_set():
            kill_timer.within(shutdown.HURRIED_S)
            mesh.hurry()
        else:
            kill_timer.within(shutdown.BOUND_S)
            asked_to_stop.set()
            output.stopping()
            output.line("stopping: running requests finish first (again: at once)")

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, on_signal)
    if lifeline := os.environ.get("WEFT_LIFELINE_FD"):
        # who holds it may give orders, and when it closes all ends: what tests and `weft dev` start outlives neither
        orders.follow(int(lifeline), mesh.obey, on_signal)
    keeping = asyncio.create_task(mesh.maintain())
    status = Exit.OK
    try:
        if await _unless(asked_to_stop, lambda: _come_up(options, mesh, output)):
            output.started()
            await asked_to_stop.wait()
        else:
            status = Exit.INTERRUPTED
    except Failure as e:
        status = e.exit
        output.failed(str(e))
    except OSError as e:
        status = Exit.FAILED
        output.failed(_of_the_system(e))
    finally:
        kill_timer.within(shutdown.BOUND_S)
        keeping.cancel()
        await mesh.stop()
    output.line("stopped")
    return status


def _of_the_system(error: OSError) -> str:
    where = f" ({error.filename})" if error.filename else ""
    return f"the mesh can't go on: {error.strerror or error}{where}"


async def _come_up(options: Options, mesh: Mesh, output: LauncherOutput) -> None:
    state, url = options.state, mesh.plan.url
    output.line(f"Weft starts on {state.folder}")
    await mesh.start()
    authority = state.trust / certificates.AUTHORITY if mesh.plan.address.tls else None
    gateway = Gateway(url, key=mesh.plan.admin_key, timeout_s=30.0, authority=authority)
    serving_files = asyncio.create_task(asyncio.to_thread(_serve_files, options, mesh.plan, output))
    deploy = options.deploy and mesh.plan.workers > 0  # else the first other machine has yet to join
    serving = await builtin.serve_something(gateway, state.builtin_deployed, output, deploy=deploy)
    keys_needed = await asyncio.to_thread(first_admin_key.keys_needed, url, authority)
    if not mesh.plan.address.loopback:
        try:
            await asyncio.to_thread(join_line.keep_token, state, gateway)
        except Failure as e:
            output.line(f"  other machines get no line to join by: {e}; `weft tokens create` makes one")
    output.line()
    output.line(f"Weft serves at {url}")
    if serving:
        output.line("ask it something:")
        output.line()
        output.line(f"  {builtin.curl(url, serving, with_key=keys_needed, authority=authority)}")
        output.line()
    if keys_needed:
        await asyncio.to_thread(first_admin_key.show, gateway, state.first_key, output)
    await serving_files
    if (line := join_line.line(state, url)) is not None and output.read_by_others:
        output.line("the line for new machines holds a token, and is not for a journal: weft status")
    elif line is not None:
        for each in join_line.told(line, join_line.install_line(state, url)):
            output.line(each)
    output.line(f"state: {state.folder}   logs: {state.logs}   stop: Ctrl-C or `weft down`")


def _serve_files(options: Options, plan: MeshPlan, output: LauncherOutput) -> None:
    """See that machines which are to join find what they are installed from."""
    if plan.address.loopback or not plan.address.tls:
        return
    try:
        served.keep(plan.state, plan.state.trust / certificates.AUTHORITY, options.bundle)
    except (BadBundle, OSError, subprocess.TimeoutExpired) as e:
        plan.state.install_record.unlink(missing_ok=True)
        output.line(f"  other machines must have Weft already to join: {e}")


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
    await asyncio.wait([working], timeout=_GIVE_UP_S)
    if working.done() and not working.cancelled():
        working.exception()  # nobody wants it any more
    return False

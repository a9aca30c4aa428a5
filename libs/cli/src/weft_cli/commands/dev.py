"""`weft dev`: a launcher, the watch over the tree that tells it what to start anew, and all logs in one stream."""

import asyncio
import contextlib
import os
import signal
from contextlib import aclosing
from pathlib import Path

from weft_client.failure import Failure
from weft_devtools import tree
from weft_devtools.dev import members, watching
from weft_devtools.dev.affected import Affected
from weft_devtools.dev.pending import Pending
from weft_embedded import orders, run_file
from weft_embedded.launcher import Options, command
from weft_embedded.state import State

from weft_cli import locate
from weft_cli.log_stream import LogStream
from weft_cli.render import on_terminal, printable

_LOOK_S = 0.25
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(folder: Path | None, *, port: int | None, workers: int | None, deploy: bool, logs: bool) -> None:
    """Run the mesh until a signal; ends with the launcher's exit status. Raises Failure outside a source tree."""
    root = tree.root()
    pending = Pending(root, members.read(root))
    options = Options(locate.state(folder), port, workers, deploy)
    status = asyncio.run(_dev(root, pending, options, logs=logs))
    raise SystemExit(status if status >= 0 else 128 - status)


async def _dev(root: Path, pending: Pending, options: Options, *, logs: bool) -> int:
    stream = LogStream(options.state)
    lifeline, held = os.pipe()
    launcher = await asyncio.create_subprocess_exec(
        *command(options),
        env={**tree.compiling(os.environ), "WEFT_LIFELINE_FD": str(lifeline)},
        pass_fds=(lifeline,),
        start_new_session=True,  # Ctrl-C comes here, and is passed on once
    )
    os.close(lifeline)

    def pass_on(number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            launcher.send_signal(number)

    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, pass_on, number)
    if own := os.environ.get("WEFT_LIFELINE_FD"):
        orders.follow(int(own), lambda _word, _part: None, lambda: pass_on(signal.SIGTERM))
    tasks = [asyncio.create_task(_watch(root, pending, options.state, held))]
    if logs:
        tasks.append(asyncio.create_task(_show(stream)))
    ended = asyncio.create_task(launcher.wait())
    try:
        await asyncio.wait([ended, *tasks], return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if task.done():
                task.result()  # raises why there is no watch any more
        return await ended
    finally:
        os.close(held)  # all ends, where it didn't yet
        await ended
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _watch(root: Path, pending: Pending, state: State, orders_to: int) -> None:
    """Tell the launcher what changed files concern, for ever."""
    _say(f"watches {', '.join(members.FOLDERS)} below {root}")
    async with aclosing(watching.changes(root)) as batches:
        async for files in batches:
            found, faults = pending.changed(files)
            for fault in faults:
                _say(f"{fault}; what stands on it keeps its old code until the next save")
            for word, part in _orders(found, state):
                try:
                    os.write(orders_to, orders.order(word, part))
                except OSError as e:
                    raise Failure(f"the launcher hears nothing any more: {e.strerror}") from e
            _tell(files, found)


def _orders(found: Affected, state: State) -> list[tuple[str, str]]:
    """What the launcher is told; of the worker it has as many as it was asked for."""
    record = run_file.read(state)
    parts = [row.name for row in record.parts] if record is not None else []
    workers = [name for name in parts if name.startswith("worker-")]
    word = orders.ANEW if found.workers else orders.ANEW_AGENT
    told = [(orders.ANEW, name) for name in parts if name in found.services]
    return told + [(word, name) for name in workers if found.workers or found.agents]


def _tell(files: frozenset[str], found: Affected) -> None:
    names = sorted(found.services)
    if found.workers:
        names.append("workers with their engine hosts")
    elif found.agents:
        names.append("workers' agents (engine hosts go on)")
    if names:
        _say(f"{_short(files)}: {', '.join(names)} anew")
    if found.launcher:
        _say("the launcher itself runs on with its old code: end this and start it again")
    if found.environment:
        changed = ", ".join(sorted(found.environment))
        _say(f"{changed} changed: end this and start it again, which makes the environment anew")


def _short(files: frozenset[str]) -> str:
    first, *others = sorted(files)
    return f"{first} and {len(others)} more" if others else first


async def _show(stream: LogStream) -> None:
    styled = on_terminal()
    while True:
        for name, line in await asyncio.to_thread(stream.lines, styled=styled):
            print(f"{name:<16} | {line}", flush=True)
        await asyncio.sleep(_LOOK_S)


def _say(text: str) -> None:
    print(f"dev: {printable(text)}", flush=True)

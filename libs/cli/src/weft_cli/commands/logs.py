"""`weft logs`: a process's log from the state's folder, a replica's from its node by way of the gateway."""

import contextlib
import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from weft_client import routes
from weft_client.failure import Failure
from weft_client.gateway import Gateway, Refused, Unreachable, segment
from weft_embedded import run_file
from weft_embedded.state import State

from weft_cli import locate
from weft_cli.log_files import follow as file_lines
from weft_cli.log_files import last_lines
from weft_cli.log_format import readable
from weft_cli.outcome import show
from weft_cli.render import on_terminal

_SILENCE_S = 90.0
"""A followed replica's log says something at least this often, if only that it lives."""
_AGAIN_S = 1.0
_TRIES = 30
"""Seconds that a gateway or node may be away while it is followed."""
CAUGHT_UP = "caught_up"
"""The event behind the lines that a followed log began with."""
_OVERLAP = 500
"""Lines asked for again after a break, to find where it was."""


def run(
    folder: Path | None,
    url: str | None,
    name: str,
    *,
    follow: bool,
    tail: int,
    node: str | None,
    raw: bool,
    as_json: bool,
) -> None:
    """Print the last lines of a log; with `follow` go on until Ctrl-C.

    As JSON one document with all lines, with `follow` one object a line.
    """
    styled, plain = on_terminal(), raw or not sys.stdout.isatty()
    state = locate.state(folder)
    processes = own_logs(state)
    whose = name
    if name in processes:
        lines = _of_process(name, processes[name], tail, follow=follow)
    else:
        gateway = locate.gateway(folder, url)
        whose = replica(gateway, name, sorted(processes))
        lines = _of_replica(gateway, whose, tail, node, follow=follow)
    if as_json and not follow:
        show({"name": whose, "lines": list(lines)})
        return
    for line in lines:
        said = json.dumps({"line": line}) if as_json else line if plain else readable(line, styled=styled)
        print(said, flush=follow)


def own_logs(state: State) -> dict[str, Path]:
    """Log file by process, of the mesh that runs on a state or ran last."""
    record = run_file.read(state)
    found = {part.name: Path(part.log) for part in record.parts} if record is not None else {}
    with contextlib.suppress(OSError):
        for path in sorted(state.logs.glob("*.log")):
            found.setdefault(path.stem, path)
    for name, folder in (("nats", state.nats), ("postgres", state.postgres)):
        if (path := folder / f"{name}.log").exists():
            found.setdefault(name, path)
    return found


def replica(gateway: Gateway, name: str, processes: Sequence[str]) -> str:
    """A replica's id from what was typed: itself, or the newest of the model of that name."""
    listed = routes.status(gateway)["replicas"]
    if any(each["id"] == name for each in listed):
        return name
    mine = [each for each in listed if each["model_name"] == name]
    if mine:
        return max(mine, key=lambda each: (each["added_at"], len(each["id"]), each["id"]))["id"]
    prefix, _, number = name.rpartition("-")
    if prefix and number.isdigit():
        return name  # stopped and out of sight, perhaps; the gateway knows
    there = ", ".join([*processes, *sorted({each["model_name"] for each in listed})])
    raise Failure(f"nothing here is called {name}; logs are kept of {there or 'nothing yet'}, and of each replica")


def _of_process(name: str, path: Path, tail: int, *, follow: bool) -> Iterator[str]:
    try:
        lines, place = last_lines(path, tail)
    except OSError as e:
        raise Failure(f"{name} has no log that can be read: {path} ({e.strerror})") from e
    yield from lines
    if follow:
        yield from (line for line in file_lines(path, place) if line is not None)


def _of_replica(gateway: Gateway, id: str, tail: int, node: str | None, *, follow: bool) -> Iterator[str]:
    path = f"/api/replicas/{segment(id)}/logs"
    query: dict[str, str | int] = {"node": node} if node else {}
    if not follow:
        yield from gateway.text(path, tail=tail, **query).split("\n")[:-1]
        return
    last: str | None = None
    tries, begun = 0, False
    while True:
        try:
            lines = tail if last is None and not begun else _OVERLAP if last is not None else 0
            stream = gateway.stream("GET", path, timeout_s=_SILENCE_S, tail=lines, follow="true", **query)
            first = next(stream, None)
            begun, tries = True, 0
            for line in _unseen(chain([first] if first is not None else [], stream), last):
                last = line
                yield line
        except (Unreachable, Refused) as e:
            passing = isinstance(e, Unreachable) or e.status in (502, 503)
            if not passing or not begun or tries >= _TRIES:
                raise
        tries += 1
        time.sleep(_AGAIN_S)


def _unseen(events: Iterable[tuple[str, str]], last: str | None) -> Iterator[str]:
    """Lines behind the last one that was seen: the first of a stream repeat what was there before a break."""
    before: list[str] | None = [] if last is not None else None
    for event, data in events:
        if event == "error":
            raise Unreachable(str(json.loads(data).get("detail", data)))
        if event == CAUGHT_UP:
            seen = before or []
            start = next((i for i in range(len(seen), 0, -1) if seen[i - 1] == last), 0)
            yield from seen[start:]
            before = None
        elif before is not None:
            before.append(data)
        else:
            yield data

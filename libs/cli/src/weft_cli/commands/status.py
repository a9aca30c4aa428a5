"""`weft status`: processes, nodes, models and replicas, as tables or as JSON."""

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from weft_client import api, memory
from weft_client.command_names import pasteable
from weft_client.failure import Exit, Failure
from weft_client.gateway import Gateway, Refused, Unreachable
from weft_contracts import disk
from weft_embedded import join_line, prerequisites, run_file
from weft_embedded.run_file import RunFile
from weft_embedded.state import State

from weft_cli import alias_table, locate
from weft_cli.commands import nodes as node_list
from weft_cli.render import age, cut, printable, table


def run(folder: Path | None, url: str | None, *, as_json: bool) -> None:
    """Print the mesh. Exits with 3 where none runs, with 4 where a part, model or replica isn't ready."""
    state = locate.state(folder)
    record = run_file.read(state)
    if record is not None and (not record.alive() or (url is not None and Gateway(url).url != record.url)):
        record = None  # another mesh was asked for, and says nothing of this one's processes
    if record is None and url is None:
        if as_json:
            print(json.dumps({"running": False, "state": str(state.folder)}))
        else:
            print(pasteable(f"no mesh runs on {state.folder}; start one: weft up"))
        raise SystemExit(int(Exit.NOT_RUNNING))
    gateway = locate.gateway(folder, url, timeout_s=10.0)
    found: api.Snapshot | None = None
    problems: tuple[str, ...]
    try:
        found = api.snapshot(gateway)
        problems = found.problems
    except (Refused, Unreachable) as e:
        full = disk.log_full(state.folder, prerequisites.disk_free(state.folder)) if record is not None else None
        problems = tuple(filter(None, (str(e), full)))
    if as_json:
        print(json.dumps(_object(gateway, str(state.folder), record, found, problems), indent=1))
    else:
        _show(gateway, record, found, problems)
        if record is not None:
            _show_line(state, gateway if found is not None else None, record.url)
    if not _ready(record, found):
        raise SystemExit(int(Exit.NOT_READY))


def _show_line(state: State, gateway: Gateway | None, url: str) -> None:
    """`gateway`: one that answers, to make another token where the last has expired."""
    line = join_line.line(state, url)
    if line is not None and gateway is not None:
        try:
            join_line.keep_token(state, gateway)
        except Failure as e:
            print(f"\nother machines get no line to join by: {e}; `weft tokens create` makes one")
            return
        line = join_line.line(state, url)
    if line is None:
        print(pasteable("\nthis mesh is for this machine alone; for others, too: weft up --listen ADDRESS"))
    else:
        print(pasteable("\n" + "\n".join(join_line.told(line, join_line.install_line(state, url))).rstrip()))


def _ready(record: RunFile | None, found: api.Snapshot | None) -> bool:
    parts = record is None or all(part.state == "ready" for part in record.parts)
    return parts and found is not None and all(_answers(model) for model in found.models)


def _answers(model: api.ModelRow) -> bool:
    return model.ready >= model.wanted and not model.given_up


def _object(
    gateway: Gateway, folder: str, record: RunFile | None, found: api.Snapshot | None, problems: tuple[str, ...]
) -> dict[str, Any]:
    lists: dict[str, Any] = asdict(found) if found is not None else {"nodes": [], "models": [], "replicas": []}
    return {
        "running": True,
        "ready": _ready(record, found),
        "url": gateway.url,
        "state": folder if record is not None else None,
        "launcher": record.pid if record is not None else None,
        "stage": record.stage if record is not None else None,
        "parts": [asdict(part) for part in record.parts] if record is not None else [],
        **lists,
        "problems": problems,
    }


def _size(m: api.ModelRow) -> str:
    """How many replicas a model may have, and why it has as many; empty where that is always one number."""
    if m.least == m.most and not m.all_nodes and not m.sized:
        return ""
    bounds = "all that match" if m.all_nodes else f"{m.least} to {'any' if m.most is None else m.most}"
    return f"{bounds}; {m.sized}" if m.sized else bounds


def _row(r: api.ReplicaRow) -> tuple[object, ...]:
    held = memory.in_words(r.devices)
    return r.id, r.model, r.revision, r.state, r.node, r.engine, held, cut(r.reason or r.progress)


def _show(gateway: Gateway, record: RunFile | None, found: api.Snapshot | None, problems: tuple[str, ...]) -> None:
    if record is not None:
        print(f"{gateway.url}, {record.stage}, up for {age(time.time() - record.since)} (process {record.pid})\n")
        parts = [(part.name, part.state, part.pid, part.port, part.restarts) for part in record.parts]
        table(("process", "state", "pid", "port", "restarts"), parts)
        if found is not None:
            print()
    if found is not None:
        node_list.show(found.nodes)
        print()
        models = [
            (
                m.name,
                m.state,
                m.serves or m.revision,
                m.engine,
                f"{m.ready}/{m.wanted}",
                cut(m.source),
                cut(m.reason),
                cut(_size(m)),
            )
            for m in found.models
        ]
        table(("model", "state", "revision", "engine", "ready", "source", "reason", "size"), models)
        print()
        if found.aliases:
            table(alias_table.HEAD, [alias_table.line(row) for row in found.aliases])
            print()
        replicas = [_row(each) for each in found.replicas]
        table(("replica", "model", "revision", "state", "node", "engine", "memory", "reason"), replicas)
        if found.files_ahead:
            print()
            ahead = [(each.model, each.node, each.state, cut(each.about, 200)) for each in found.files_ahead]
            table(("files of", "node", "state", "about"), ahead)
        problems = (
            *problems,
            *(f"{m.name} has no tokenizer here: {m.no_tokenizer}" for m in found.models if m.no_tokenizer),
        )
    for problem in problems:
        if found is not None or record is not None:
            print()
        print(pasteable(printable(cut(problem, 300))))

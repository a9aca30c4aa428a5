"""What nodes do now, as answers show it: in figures, and in words that command line and page share."""

from typing import Final

import weft_api as api
from weft_contracts.ids import NodeId
from weft_contracts.signals import FetchPhase, FetchSaid, InstallPhase, InstallSaid, LoadSaid
from weft_fleet import Fleet, ReplicaView

from weft_gateway.domain.progress_board import ProgressBoard
from weft_gateway.domain.time_left import LEAST_S, span, time_left

_PHASES: dict[InstallPhase, str] = {
    "queued": "waits for other installs",
    "waiting": "another worker of its machine installs it",
    "resolving": "choosing packages",
    "fetching": "fetching packages",
    "building": "building it for this machine's devices, which takes long",
    "placing": "putting packages in place",
    "checking": "trying it out",
}
OTHERS_FIRST: Final = "other models are fetched first"
_FETCHES: dict[FetchPhase, str] = {
    "waiting": OTHERS_FIRST,
    "placing": "files fetched, putting them in place",
}
_DECIMAL = ("B", "kB", "MB", "GB", "TB")
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def install_shape(said: InstallSaid) -> api.InstallProgress:
    """One install of a node."""
    fetching = said.phase == "fetching" and said.total > 0
    left = time_left(said.fetched, said.total, said.fetching_s) if fetching else None
    about = _PHASES[said.phase]
    if fetching:
        about = f"fetching {said.package or 'packages'}, {_of(said.fetched, said.total)}{_rest(left)}"
    if said.overdue:
        about = f"still installing after {span(said.since_s).removeprefix('about ')}: {about}"
    return {
        "engine": said.engine,
        "version": said.version,
        "vendor": said.vendor,
        "phase": said.phase,
        "package": said.package or None,
        "fetched": said.fetched if said.total else None,
        "total": said.total or None,
        "left_s": left,
        "since_s": said.since_s,
        "overdue": said.overdue,
        "about": about,
    }


def fetch_shape(node: NodeId, said: FetchSaid) -> api.FetchProgress:
    """One fetch of a model's files."""
    rate = said.rate if said.phase == "fetching" and said.rate >= 1 and said.fetching_s >= LEAST_S else None
    left = (said.total - said.fetched) / rate if rate is not None and said.total > said.fetched else None
    about = _FETCHES.get(said.phase, "")
    if not about:
        done = 100 * said.fetched // said.total if said.total else 0
        speed = f", {_decimal(rate)}/s" if rate is not None else ""
        about = f"fetching {min(done, 100)} % of {_decimal(said.total)}{speed}{_rest(left)}"
    return {
        "node": node,
        "phase": said.phase,
        "source": said.source,
        "file": said.file or None,
        "fetched": said.fetched,
        "total": said.total,
        "rate": rate,
        "left_s": left,
        "about": about,
    }


def load_shape(node: NodeId, said: LoadSaid) -> api.LoadProgress:
    """One load of a node."""
    left = time_left(said.taken, said.total, said.loading_s)
    whole = said.taken >= said.total
    about = "weights loaded, starting" if whole else f"loading weights, {_of(said.taken, said.total)}{_rest(left)}"
    return {"node": node, "taken": said.taken, "total": said.total, "left_s": left, "about": about}


def installs_of(board: ProgressBoard, node: NodeId) -> list[api.InstallProgress]:
    """What a node installs."""
    said = board.of(node)
    return [install_shape(each) for each in said.installs] if said is not None else []


def replica_progress(fleet: Fleet, board: ProgressBoard, view: ReplicaView) -> api.ReplicaProgress | None:
    """What a replica waits for and holds; None where its nodes said nothing of it that counts."""
    installs, loads = [_install_for(board, view, m.node) for m in view.members], _loads_of(board, view)
    install = next((each for each in installs if each is not None), None)
    load = min(loads, key=lambda each: each["taken"] / max(each["total"], 1), default=None)
    fetch = min(_fetches_of(board, view), key=lambda each: each["fetched"] / max(each["total"], 1), default=None)
    used = _used_by(board, view)
    if install is None and fetch is None and load is None and not used:
        return None
    about = load["about"] if load is not None else ""
    if fetch is not None:
        about = fetch["about"]
    if install is not None:
        about = install["about"] if install["overdue"] else f"installing {install['engine']}: {install['about']}"
    return {
        "about": about,
        "install": install,
        "fetch": fetch,
        "load": load,
        "devices": _devices(fleet, view, used),
    }


def _install_for(board: ProgressBoard, view: ReplicaView, node: NodeId) -> api.InstallProgress | None:
    """The install that a replica's run waits for on a node."""
    run, said = view.runs.get(node), board.of(node)
    if said is None or run is None or run.phase != "installing":
        return None
    fitting = [each for each in said.installs if each.engine == run.engine]
    return install_shape(fitting[0]) if fitting else None


def _fetches_of(board: ProgressBoard, view: ReplicaView) -> list[api.FetchProgress]:
    found: list[api.FetchProgress] = []
    for member in view.members:
        run, said = view.runs.get(member.node), board.of(member.node)
        if said is not None and run is not None and run.phase == "fetching":
            found += [fetch_shape(member.node, each) for each in said.fetches if each.replica == view.id]
    return found


def _loads_of(board: ProgressBoard, view: ReplicaView) -> list[api.LoadProgress]:
    found: list[api.LoadProgress] = []
    for member in view.members:
        run, said = view.runs.get(member.node), board.of(member.node)
        if said is not None and run is not None and run.phase == "loading":
            found += [load_shape(member.node, each) for each in said.loads if each.replica == view.id]
    return found


def _used_by(board: ProgressBoard, view: ReplicaView) -> dict[tuple[NodeId, int], int]:
    """Bytes by node and device."""
    said = [(member.node, board.of(member.node)) for member in view.members]
    return {
        (node, each.device): each.used
        for node, progress in said
        if progress is not None
        for each in progress.memory
        if each.replica == view.id
    }


def _devices(fleet: Fleet, view: ReplicaView, used: dict[tuple[NodeId, int], int]) -> list[api.DeviceUse]:
    found: list[api.DeviceUse] = []
    for member in view.members:
        node = fleet.nodes.get(member.node)
        hardware = node.hardware if node is not None else None
        names = {each.index: each.name for each in hardware.devices} if hardware is not None else {}
        for claim in member.devices:
            found.append(
                {
                    "node": member.node,
                    "node_name": node.name if node is not None else "",
                    "index": claim.index,
                    "name": names.get(claim.index, ""),
                    "claimed": claim.bytes,
                    "used": used.get((member.node, claim.index)),
                }
            )
    return found


def _decimal(size: float) -> str:
    """Bytes as sources count them: `40 MB`, `2.1 GB`."""
    unit = 0
    while size >= 999.5 and unit < len(_DECIMAL) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.1f} {_DECIMAL[unit]}" if unit > 0 and size < 9.95 else f"{size:.0f} {_DECIMAL[unit]}"


def _of(done: int, total: int) -> str:
    """`0.4 of 1.2 GiB`: both in the larger one's unit."""
    unit, scale = 0, 1
    while total / scale >= 1000 and unit < len(_UNITS) - 1:
        unit, scale = unit + 1, scale * 1024
    digits = 0 if unit == 0 or total / scale >= 100 else 1
    return f"{done / scale:.{digits}f} of {total / scale:.{digits}f} {_UNITS[unit]}"


def _rest(left: float | None) -> str:
    return f", {span(left)} left" if left is not None else ""

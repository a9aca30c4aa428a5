"""`weft install --systemd` and `weft uninstall --systemd`: units that run what is here, and their removal."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from weft_client.command_names import pasteable
from weft_client.failure import Exit, Failure
from weft_servers import nats_server

from weft_cli.outcome import show
from weft_cli.systemd import installation, parts, places, unit_file, worker_file
from weft_cli.systemd.parts import MeshOptions, Part
from weft_cli.systemd.places import USER, Places
from weft_cli.systemd.unit_file import Unit

_BOUND_S = 30.0
_USERS = f'u {USER} - "Weft" /var/lib/weft\n'


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line says."""

    part: Part
    user: bool
    state: Path | None
    config: Path | None
    folder: Path | None
    mesh: MeshOptions
    worker: worker_file.WorkerSaid


@dataclass
class Done:
    """What was made, taken away or left, as paths."""

    unit: str
    files: list[str] = field(default_factory=list[str])
    left: list[str] = field(default_factory=list[str])
    runs: bool = False


def run(wanted: Wanted, *, now: bool, only_print: bool, as_json: bool) -> None:
    """Write a unit, and start it where `now` says so. Raises Failure for what can't be meant or done."""
    where = places.of_user() if wanted.user else places.of_system()
    if where.system and not only_print:
        _as_root("install")
    target = where.units / parts.UNITS[wanted.part]
    if not only_print:
        _check_ours(target)
        if now and not where.runs:
            raise Failure(f"no systemd runs here that could start {target.name}: leave --now out")
    try:
        unit = _unit(wanted, where, dry=only_print)
        text = unit.text()
    except unit_file.BadWord as error:
        raise Failure(str(error), Exit.USAGE) from None
    if only_print:
        show({"unit": unit.name, "text": text}) if as_json else print(text, end="")
        return
    done = Done(unit.name)
    if where.system:
        _make_user(where, done)
        _give(wanted, where)
    before = target.read_text() if target.exists() else ""
    _write(target, text, done)
    if where.runs:
        _call(*where.manager, "daemon-reload")
    if now:
        _call(*where.manager, "enable", unit.name, bound_s=_BOUND_S)
        if wanted.part == "worker" and unit_file.of_another_release(before, text) and _active(where, unit.name):
            # Its supervisor starts its agent from the new release, and engines run on.
            _call(*where.manager, "reload", unit.name, bound_s=_BOUND_S)
        else:
            _call(*where.manager, "restart", unit.name, bound_s=_start_bound(unit))
    done.runs = now
    if as_json:
        show({"unit": done.unit, "made": done.files, "started": done.runs})
        return
    for each in done.files:
        print(f"made {each}")
    if not done.files:
        print(f"{target} is as it should be")
    _hints(wanted, where, unit, now=now)


def remove(part: Part, *, user: bool, purge: bool, as_json: bool) -> None:
    """Stop and take away what `run` made. Raises Failure where that was edited, or isn't there."""
    where = places.of_user() if user else places.of_system()
    if where.system:
        _as_root("uninstall")
    name = parts.UNITS[part]
    target = where.units / name
    if not target.exists():
        raise Failure(f"there is no {target}: nothing was installed there")
    _check_ours(target)
    state = unit_file.remembered(target.read_text(), "State")
    done = Done(name)
    if where.runs:
        _call(*where.manager, "disable", "--now", name, bound_s=parts.LONGEST_STOP_S)
    target.unlink()
    done.files.append(str(target))
    if where.system and not any((where.units / each).exists() for each in parts.UNITS.values()):
        if where.users.exists() and unit_file.as_made(where.users.read_text()):
            where.users.unlink()
            done.files.append(str(where.users))
        done.left.append(f"the user {USER}")
    if where.runs:
        _call(*where.manager, "daemon-reload")
    for each in _own_files(part, where, state):
        if purge:
            shutil.rmtree(each) if each.is_dir() else each.unlink()
            done.files.append(str(each))
        else:
            done.left.append(str(each))
    if as_json:
        show({"unit": done.unit, "removed": done.files, "left": done.left})
        return
    for each in done.files:
        print(f"removed {each}")
    for each in done.left:
        print(f"left {each}")


def _unit(wanted: Wanted, where: Places, *, dry: bool) -> Unit:
    own = installation.paths()
    if where.system and not dry and (closed := places.closed_to(USER, own)) is not None:
        raise Failure(
            f"units of the system run as the user {USER}, who can't read {closed}, where this Weft lies: install Weft"
            " where everybody may read it, such as /opt/weft, or make a unit of your own: --user"
        )
    state = (wanted.state or where.state(wanted.part)).expanduser().absolute()
    folder = [wanted.folder.expanduser().absolute()] if wanted.folder is not None else []
    if where.system and not dry and (hidden := places.hidden((*own, state, *folder))) is not None:
        raise Failure(
            f"units of the system have a /tmp of their own and don't see {hidden}: keep it elsewhere, such as in"
            " /opt/weft or /srv/weft"
        )
    home = "read-only" if places.at_home((*own, state, *folder)) else "yes"
    match wanted.part:
        case "mesh":
            return parts.mesh(where, state, wanted.mesh, home=home)
        case "worker":
            file = (wanted.config or where.settings / parts.WORKER_FILE).expanduser().absolute()
            if not dry:
                worker_file.make_if_lacking(file, wanted.worker)
            bound = worker_file.stop_bound_s(file, where.settings / parts.ENVIRONMENT["worker"], lacking_ok=dry)
            return parts.worker(where, state, file, bound, home=home)
        case "nats":
            return parts.nats(where, _folder(wanted, where, dry=dry), nats_server.find_binary(), home=home)


def _folder(wanted: Wanted, where: Places, *, dry: bool) -> Path:
    if wanted.folder is None:
        raise Failure("a server of the log needs its folder, as `weft nats-config` makes it: --folder DIR", Exit.USAGE)
    folder = wanted.folder.expanduser().absolute()
    if not (folder / "nats.conf").is_file():
        raise Failure(f"{folder} has no nats.conf: want a folder that `weft nats-config` made", Exit.USAGE)
    if where.system and not dry and (closed := places.closed_to(USER, (folder.parent,))) is not None:
        raise Failure(
            f"the user {USER} can't enter {closed}: move the folder where everybody may go, such as /srv/weft"
        )
    return folder


def _as_root(command: str) -> None:
    if os.geteuid() != 0:
        raise Failure(
            f"units of the system are root's: run this as root (sudo), or make one of your own:"
            f" weft {command} --systemd --user"
        )


def _check_ours(target: Path) -> None:
    """Raises Failure where a file is somebody else's, or was edited."""
    if not target.exists() and not target.is_symlink():
        return
    text = target.read_text() if target.is_file() else ""
    if not unit_file.made_here(text):
        raise Failure(f"{target} is there, and `weft install` didn't make it: move it away")
    if not unit_file.as_made(text):
        raise Failure(
            f"{target} was edited since `weft install` made it: put your lines into a file of their own"
            f" (systemctl edit {target.name}), and move this one away"
        )


def _make_user(where: Places, done: Done) -> None:
    _write(where.users, unit_file.marked(_USERS), done)
    _call("systemd-sysusers", str(where.users))


def _give(wanted: Wanted, where: Places) -> None:
    """Folders that systemd doesn't make itself belong to the user as whom the unit runs."""
    match wanted.part:
        case "nats":
            assert wanted.folder is not None
            _give_all(wanted.folder.expanduser().resolve())
        case "mesh" | "worker":
            state = (wanted.state or where.state(wanted.part)).expanduser().absolute()
            if places.state_of_system(state) is None and not state.exists():
                state.mkdir(mode=0o700, parents=True)
                shutil.chown(state, USER, USER)


def _give_all(top: Path) -> None:
    """A folder whose owner may be at work in it, so that no name is followed out of it."""
    user = pwd.getpwnam(USER)
    os.chown(top, user.pw_uid, user.pw_gid, follow_symlinks=False)
    for _, folders, files, within in os.fwalk(top):
        for each in (*folders, *files):
            with suppress(FileNotFoundError):
                os.chown(each, user.pw_uid, user.pw_gid, dir_fd=within, follow_symlinks=False)


def _write(target: Path, text: str, done: Done) -> None:
    if target.exists() and target.read_text() == text:
        return
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.with_name(f".{target.name}.new")
        fresh.write_text(text)
        fresh.chmod(0o644)
        fresh.replace(target)
    except OSError as error:
        raise Failure(f"{target} can't be written: {error.strerror}") from None
    done.files.append(str(target))


def _own_files(part: Part, where: Places, state: str | None) -> list[Path]:
    """What a part has beside its unit, as far as it is there."""
    named = [where.settings / parts.ENVIRONMENT[part]]
    if part == "worker":
        named.append(where.settings / parts.WORKER_FILE)
    if state is not None:
        named.append(Path(state))
    return [each for each in named if each.exists()]


def _start_bound(unit: Unit) -> float:
    service = dict(dict(unit.sections)["Service"])
    return float(service.get("TimeoutStartSec", "90")) + float(service["TimeoutStopSec"])


def _active(where: Places, name: str) -> bool:
    command = [*where.manager, "is-active", "--quiet", name]
    return subprocess.run(command, capture_output=True, check=False, timeout=_BOUND_S).returncode == 0


def _call(*command: str, bound_s: float = _BOUND_S) -> None:
    """Raises Failure with what it says where it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=bound_s)
    except FileNotFoundError:
        raise Failure(f"there is no {command[0]} on this machine, which systemd has: is it there?") from None
    except subprocess.TimeoutExpired:
        raise Failure(f"`{' '.join(command)}` has not ended within {bound_s:g} s") from None
    if done.returncode:
        raise Failure(f"`{' '.join(command)}`: {done.stderr.strip() or f'status {done.returncode}'}")


def _hints(wanted: Wanted, where: Places, unit: Unit, *, now: bool) -> None:
    manager = " ".join(where.manager)
    lines: Sequence[str] = [] if now else [f"start it, now and at each boot:  {manager} enable --now {unit.name}"]
    state = unit_file.remembered(unit.text(), "State")
    if wanted.part == "mesh":
        caller = f"sudo -u {USER} " if where.system else ""
        lines = [*lines, f"commands for it:  {caller}weft status --state {state}"]
    if not where.system:
        lines = [*lines, "without a login, too:  loginctl enable-linger"]
    for each in lines:
        print(pasteable(each))

"""The units: a mesh (`weft up`), a worker, a server of the log. Each runs one command as it is typed by hand."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from weft_client.failure import Exit
from weft_embedded import detach, shutdown

from weft_cli.systemd import sandbox
from weft_cli.systemd.places import USER, Places, state_of_system
from weft_cli.systemd.unit_file import Lines, Unit, command, path, remembering

Part = Literal["mesh", "worker", "nats"]
UNITS: Mapping[Part, str] = {"mesh": "weft.service", "worker": "weft-worker.service", "nats": "weft-nats.service"}
ENVIRONMENT: Mapping[Part, str] = {"mesh": "weft.env", "worker": "worker.env", "nats": "nats.env"}
"""A file of variables for each, which need not be there."""
WORKER_FILE = "worker.toml"

WORKER_MARGIN_S = 13.0
"""What a worker takes beyond its drain and its requests: its agent's own 10 s, then 3 s for engines."""
STOP_MARGIN_S = 5.0
"""What runs bounds its own end; systemd waits a little longer, then kills."""
NATS_STOP_S = 30.0
BAD_CONFIGURATION = 78
"""A worker's: the mesh refuses it, or it was told what can't be."""
LONGEST_STOP_S = 4500.0
"""Above what the longest drain of a worker takes."""
_AGAIN_AFTER_S = 5


@dataclass(frozen=True, slots=True)
class MeshOptions:
    """What `weft up` is told; None: nothing."""

    listen: str | None = None
    port: int | None = None
    workers: int | None = None
    nats_port: int | None = None
    model: bool = True

    def words(self) -> list[str]:
        said = {
            "--listen": self.listen,
            "--port": self.port,
            "--workers": self.workers,
            "--nats-port": self.nats_port,
        }
        found = [word for name, value in said.items() if value is not None for word in (name, str(value))]
        return found if self.model else [*found, "--no-model"]


def mesh(places: Places, state: Path, options: MeshOptions, *, home: str) -> Unit:
    """The first machine: the whole mesh in the foreground. It is started once it serves."""
    low = any(port is not None and port < 1024 for port in (options.port, options.nats_port))
    up = command(sys.executable, "-m", "weft_cli", "up", "--state", str(state), *options.words())
    service = [
        ("Type", "notify"),
        ("ExecStart", up),
        ("TimeoutStartSec", f"{detach.BOUND_S:g}"),
        ("TimeoutStopSec", f"{shutdown.DOWN_S + STOP_MARGIN_S:g}"),
        *_again(Exit.USAGE),
        # Told to stop while it starts.
        ("SuccessExitStatus", str(int(Exit.INTERRUPTED))),
        *_environment(places, "mesh"),
        *_state(places, state),
        *_sandbox(places, state, home, "services" if options.workers == 0 else "engines", low_port=low),
    ]
    return _unit(places, "mesh", "Weft: a mesh that serves language models", state, service)


def worker(places: Places, state: Path, file: Path, stop_s: float, *, home: str) -> Unit:
    """A further machine. The file with its token is read by systemd and handed on, where that is the system's."""
    handed = "${CREDENTIALS_DIRECTORY}/" + WORKER_FILE if places.system else str(file)
    run = command(sys.executable, "-m", "weft_cli", "worker", "--config", handed, "--state", str(state))
    service = [
        ("Type", "exec"),
        ("ExecStart", run),
        # The agent anew, from what is installed by now; engines run on.
        ("ExecReload", "/bin/kill -USR1 $MAINPID"),
        *((("LoadCredential", f"{WORKER_FILE}:{path(str(file))}"),) if places.system else ()),
        ("TimeoutStopSec", f"{stop_s + STOP_MARGIN_S:g}"),
        *_again(Exit.USAGE, BAD_CONFIGURATION),
        *_environment(places, "worker"),
        *_state(places, state),
        *_sandbox(places, state, home, "engines"),
    ]
    return _unit(places, "worker", "Weft: a machine that works for a mesh", state, service)


def nats(places: Places, folder: Path, binary: Path, *, home: str) -> Unit:
    """A server of the log, in its folder as `weft nats-config` wrote it."""
    service = [
        ("Type", "exec"),
        ("WorkingDirectory", path(str(folder))),
        ("ExecStart", command(str(binary), "-c", "nats.conf")),
        ("ExecReload", "/bin/kill -HUP $MAINPID"),
        ("TimeoutStopSec", f"{NATS_STOP_S:g}"),
        *_again(),
        *_environment(places, "nats"),
        *((("User", USER),) if places.system else ()),
        *_sandbox(places, folder, home, "server"),
    ]
    return _unit(places, "nats", "Weft: a server of the event log", folder, service)


def _unit(places: Places, part: Part, description: str, state: Path, service: list[tuple[str, str]]) -> Unit:
    about: Lines = [
        ("Description", description),
        # A user's manager knows no network; what isn't reached yet is asked for again.
        *([("Wants", "network-online.target"), ("After", "network-online.target")] if places.system else []),
        *([("Before", UNITS["mesh"])] if part == "nats" else []),
        ("StartLimitIntervalSec", "300"),
        ("StartLimitBurst", "5"),
    ]
    wanted: Lines = [("WantedBy", "multi-user.target" if places.system else "default.target")]
    return Unit(
        UNITS[part], (("Unit", about), ("Service", service), ("Install", wanted), remembering(State=str(state)))
    )


def _again(*never: int) -> list[tuple[str, str]]:
    """Started again after a failure, but not after these statuses: the same would come of it. Its main process is asked
    to end and ends the others, in order; what is left then is killed."""
    found = [("Restart", "on-failure"), ("RestartSec", str(_AGAIN_AFTER_S))]
    found += [("RestartPreventExitStatus", " ".join(str(int(each)) for each in never))] if never else []
    return [*found, ("KillMode", "mixed")]


def _environment(places: Places, part: Part) -> Lines:
    return [("EnvironmentFile", f"-{path(str(places.settings / ENVIRONMENT[part]))}")]


def _state(places: Places, state: Path) -> Lines:
    if not places.system:
        return []
    name = state_of_system(state)
    made = [("StateDirectory", path(name)), ("StateDirectoryMode", "0700")] if name is not None else []
    # Caches of tools lie at home, and that is the one folder which may be written.
    return [("User", USER), *made, ("Environment", f"HOME={path(str(state))}")]


def _sandbox(places: Places, state: Path, home: str, runs: sandbox.Runs, *, low_port: bool = False) -> Lines:
    if not places.system:
        return sandbox.of_user()
    elsewhere = state_of_system(state) is None or runs == "server"
    writes = [path(str(state))] if elsewhere else []
    return sandbox.of_system(home=home, writes=writes, runs=runs, low_port=low_port)

"""The state directory of an embedded mesh: where everything lies, and who may read it."""

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from weft_client.failure import Failure


@dataclass(frozen=True, slots=True)
class State:
    """Paths below one directory. Nothing outside it is written."""

    folder: Path

    @property
    def lock(self) -> Path:
        """Held by the launcher and, through it, by all that it started."""
        return self.folder / "lock"

    @property
    def run_file(self) -> Path:
        """What runs now: processes, ports, address."""
        return self.folder / "run.json"

    @property
    def ports(self) -> Path:
        return self.folder / "ports.json"

    @property
    def trust(self) -> Path:
        return self.folder / "trust"

    @property
    def settings(self) -> Path:
        """What the last `up` was asked for and the next one keeps: the number of workers, where it listens."""
        return self.folder / "settings.json"

    @property
    def join_token(self) -> Path:
        """The secret with which this launcher's own workers join, approved."""
        return self.folder / "join-token"

    @property
    def admin_key(self) -> Path:
        """The secret of this state's own admin key: with it, commands on this machine are let in."""
        return self.folder / "admin-key"

    @property
    def first_key(self) -> Path:
        """Exists once a first admin key was made for people and printed: its id."""
        return self.folder / "first-key"

    @property
    def machine_token(self) -> Path:
        """The token with which other machines may ask to join: `weft status` shows it."""
        return self.folder / "machine-token.json"

    @property
    def install(self) -> Path:
        """What the gateway serves to machines that are to join: files under their digests."""
        return self.folder / "install"

    @property
    def install_record(self) -> Path:
        """What that folder was made of, and the digest of its script."""
        return self.folder / "install.json"

    @property
    def builtin_deployed(self) -> Path:
        """Exists once the built-in model was deployed: who removed it since doesn't get it back."""
        return self.folder / "builtin-deployed"

    @property
    def nats(self) -> Path:
        return self.folder / "nats"

    @property
    def postgres(self) -> Path:
        return self.folder / "postgres"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    def held(self, part: str) -> Path:
        """While it exists, the launcher does not start a part again that has ended."""
        return self.folder / "held" / part

    def credentials(self, service: str) -> Path:
        """A service's NATS credentials."""
        return self.folder / "credentials" / f"{service}.creds"

    def certificate(self, service: str) -> Path:
        """The folder of a service's certificate, where the mesh speaks TLS."""
        return self.folder / "certificates" / service

    def worker(self, number: int) -> Path:
        """What a worker keeps: its key, its backends. Numbers start at 1."""
        return self.folder / "workers" / str(number)

    def service(self, name: str) -> Path:
        """What a service keeps beside the log; most keep nothing."""
        return self.folder / "services" / name

    def log(self, part: str) -> Path:
        return self.logs / f"{part}.log"

    def prepare(self) -> None:
        """Make the directory, mode 700. Raises Failure where that can't be."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self.folder.stat().st_uid != os.geteuid():
                raise Failure(f"{self.folder} belongs to another user; name your own: --state DIR")
            self.folder.chmod(0o700)
            for each in (self.logs, self.folder / "credentials"):
                each.mkdir(mode=0o700, exist_ok=True)
        except OSError as e:
            reason = e.strerror or str(e)
            raise Failure(f"no state can be kept in {self.folder}: {reason}; name another: --state DIR") from e


def default_folder() -> Path:
    """`$WEFT_STATE`, else `weft` in the user's folder for state (XDG)."""
    if named := os.environ.get("WEFT_STATE"):
        return Path(named)
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "weft"


def write_private(path: Path, text: str) -> None:
    """Replace a file at once, readable by its owner alone."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd, fresh = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mode 600
    try:
        with os.fdopen(fd, "w") as out:
            out.write(text)
        os.replace(fresh, path)
    except BaseException:
        os.unlink(fresh)
        raise


def read_json(path: Path) -> dict[str, Any] | None:
    """The object that a file holds; None where there is none that can be read."""
    try:
        parsed: object = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else None

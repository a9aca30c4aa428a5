"""A machine that a real systemd has booted: namespaces of this one, with its programs and a state of their own.

The manager is process 1 of its own process tree, and sees the units alone that are written there, so nothing of this
machine's services is started or touched. Folders that units write are its own, too, and gone with it. The network is
this machine's. It needs root; where it can't be had a test fails, and says what is missing.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

_MANAGER = "/lib/systemd/systemd"
_BOUND_S = 30.0
_TARGETS = ("sysinit", "basic", "shutdown", "multi-user", "network-online", "default")
_SCRIPT = r"""
set -e
mount --make-rprivate /
mount -t proc proc /proc
mount -t tmpfs -o mode=755 tmpfs /run
mkdir /run/kept /run/upper /run/work
number=0
for folder in $KEPT; do number=$((number + 1)); mkdir /run/kept/$number; mount --bind "$folder" /run/kept/$number; done
mount -t overlay overlay -o lowerdir=/etc,upperdir=/run/upper,workdir=/run/work /etc
for folder in /root /home /srv /var/lib /var/log; do mount -t tmpfs -o mode=755 tmpfs $folder; done
for folder in /tmp /var/tmp; do mount -t tmpfs -o mode=1777 tmpfs $folder; done
number=0
for folder in $KEPT; do number=$((number + 1)); mkdir -p "$folder"; mount --bind /run/kept/$number "$folder"; done
umount -R /sys/fs/cgroup 2>/dev/null || true
mount -t tmpfs tmpfs /sys/fs/cgroup
mkdir /sys/fs/cgroup/systemd
mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
mount -t tmpfs -o mode=755 tmpfs /etc/systemd
mkdir -p /etc/systemd/system/service.d
for target in $TARGETS; do printf '[Unit]\nDefaultDependencies=no\n' >/etc/systemd/system/$target.target; done
# No journal runs here: what units say goes to a file.
printf '[Service]\nStandardOutput=append:/var/log/units\nStandardError=append:/var/log/units\n' \
    >/etc/systemd/system/service.d/log.conf
# Code that stands before the installed one here does so there.
if [ -n "$CODE" ]; then
    printf '[Service]\nEnvironment=PYTHONPATH=%s\n' "$CODE" >/etc/systemd/system/service.d/code.conf
fi
# As a machine's own manager has it: credentials are mounted by a process of each unit, and must be seen by the others.
mount --make-rshared /
exec env -i container=test SYSTEMD_UNIT_PATH=/etc/systemd/system PATH="$PATH" \
    "$MANAGER" --system --unit=multi-user.target --log-target=console --log-level=warning --show-status=0
"""


_MANAGER_OF_USER = f"""[Service]
Type=notify
User=NAME
ExecStart={_MANAGER} --user --log-target=console --log-level=warning
Environment=HOME=/home/NAME XDG_RUNTIME_DIR=/run/NAME
RuntimeDirectory=NAME
RuntimeDirectoryMode=0700
Delegate=yes
KillMode=mixed
"""


class NoMachine(AssertionError):
    """None can be booted here; the message says why."""


class Booted:
    """One booted machine. Use it as a context manager. Raises NoMachine."""

    def __init__(self, tree: Path) -> None:
        """`tree`: what is seen there where it lies here, beside this interpreter and its environment."""
        self._kept = _outermost([tree, Path(sys.prefix), Path(sys.base_prefix)])
        self._code = os.pathsep.join(self._code_there())
        self._process: subprocess.Popen[bytes] | None = None
        self._manager = 0

    def __enter__(self) -> Self:
        if os.geteuid() != 0:
            raise NoMachine("a machine is booted by root alone: run this test as root")
        if lacking := [each for each in (_MANAGER, "unshare", "nsenter", "systemctl") if not shutil.which(each)]:
            raise NoMachine(f"{', '.join(lacking)} not found (Debian, Ubuntu: apt install systemd util-linux)")
        namespaces = ("--pid", "--fork", "--kill-child", "--mount", "--ipc", "--uts", "--cgroup")
        said = {"KEPT": " ".join(map(str, self._kept)), "TARGETS": " ".join(_TARGETS), "MANAGER": _MANAGER}
        said["CODE"] = self._code
        self._process = subprocess.Popen(
            ["unshare", *namespaces, "sh", "-c", _SCRIPT],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={"PATH": os.environ["PATH"], **said},
            start_new_session=True,
        )
        try:
            self._wait()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, *command: str, timeout: float = 60.0, **settings: str) -> subprocess.CompletedProcess[str]:
        """Run a command there, as root, with a bare environment and these variables. Its status is not judged."""
        entering = ("nsenter", "--target", str(self._manager), "--mount", "--pid", "--ipc", "--uts", "--cgroup")
        # systemctl looks for its manager where a machine that systemd booted has it.
        environment = {"PATH": os.environ["PATH"], "HOME": "/root", "LC_ALL": "C.UTF-8", **settings}
        if self._code:
            environment["PYTHONPATH"] = self._code
        return subprocess.run(
            [*entering, "--wd=/", *command],
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
            env=environment,
            stdin=subprocess.DEVNULL,
        )

    def user(self, name: str) -> "User":
        """Somebody without any right, whose own manager runs as a login would start it."""
        self.write("/etc/sysusers.d/people.conf", f'u {name} - "{name}" /home/{name} /bin/sh\n', 0o644)
        self.write(f"/etc/systemd/system/{name}.service", _MANAGER_OF_USER.replace("NAME", name), 0o644)
        steps = f"systemd-sysusers && install -d -o {name} /home/{name} && systemctl daemon-reload"
        done = self.run("sh", "-c", f"{steps} && systemctl start {name}.service")
        if done.returncode:
            raise NoMachine(f"{name}'s manager could not be started: {done.stderr}")
        return User(self, name)

    def weft(self, *words: str, timeout: float = 60.0, **settings: str) -> subprocess.CompletedProcess[str]:
        """Run a command line of Weft there."""
        return self.run(sys.executable, "-m", "weft_cli", *words, timeout=timeout, **settings)

    def read(self, path: str) -> str:
        """A file of that machine."""
        return (Path(f"/proc/{self._manager}/root") / path.lstrip("/")).read_text()

    def write(self, path: str, text: str, mode: int = 0o600) -> None:
        """Write a file of that machine."""
        inside = Path(f"/proc/{self._manager}/root") / path.lstrip("/")
        inside.parent.mkdir(parents=True, exist_ok=True)
        inside.write_text(text)
        inside.chmod(mode)

    def copy(self, other: "Booted", source: str, target: str) -> None:
        """Bring a file of another machine here."""
        roots = (Path(f"/proc/{each._manager}/root") for each in (other, self))
        taken, put = (root / path.lstrip("/") for root, path in zip(roots, (source, target), strict=True))
        put.write_bytes(taken.read_bytes())

    def there(self, path: str) -> bool:
        """Whether it has a file or folder."""
        return (Path(f"/proc/{self._manager}/root") / path.lstrip("/")).exists()

    def show(self, unit: str, *properties: str) -> dict[str, str]:
        """What the manager says of a unit."""
        said = self.run("systemctl", "show", unit, f"--property={','.join(properties)}").stdout
        return dict(line.split("=", 1) for line in said.splitlines())

    def _code_there(self) -> list[str]:
        """Folders of this process' own PYTHONPATH that are kept, as units see them: a private /tmp hides none."""
        found: list[str] = []
        for each in filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)):
            for number, kept in enumerate(self._kept, 1):
                if (code := Path(each).resolve()).is_relative_to(kept):
                    found.append(str(Path("/run/kept", str(number), code.relative_to(kept))))
        return found

    def close(self) -> None:
        """End all of it: with its process 1 the kernel ends every other."""
        if self._process is None:
            return
        self._process.kill()  # unshare; its child, process 1, goes with it
        self._process.wait(_BOUND_S)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None

    def _wait(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + _BOUND_S
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                assert self._process.stdout is not None
                raise NoMachine(f"none could be booted: {self._process.stdout.read().decode(errors='replace')}")
            self._manager = _child(self._process.pid)
            if self._manager and "running" in self._state():
                return
            time.sleep(0.05)
        raise NoMachine(f"systemd was not up within {_BOUND_S:g} s")

    def _state(self) -> str:
        try:
            if not Path(f"/proc/{self._manager}/root/run/systemd/private").exists():
                return ""
        except OSError:
            return ""
        return self.run("systemctl", "is-system-running").stdout


class User:
    """Somebody of a booted machine."""

    def __init__(self, booted: Booted, name: str) -> None:
        self._booted = booted
        self._name = name

    def run(self, *command: str, timeout: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Run a command as they would. Its status is not judged."""
        as_them = ("setpriv", f"--reuid={self._name}", f"--regid={self._name}", "--init-groups")
        own = {"HOME": f"/home/{self._name}", "XDG_RUNTIME_DIR": f"/run/{self._name}"}
        return self._booted.run(*as_them, *command, timeout=timeout, **own)

    def weft(self, *words: str, timeout: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Run a command line of Weft."""
        return self.run(sys.executable, "-m", "weft_cli", *words, timeout=timeout)

    def show(self, unit: str, name: str) -> str:
        """What their manager says of a unit."""
        return self.run("systemctl", "--user", "show", unit, f"--property={name}", "--value").stdout.strip()


def _child(pid: int) -> int:
    try:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return 0
    return int(found[0]) if found else 0


def _outermost(folders: Sequence[Path]) -> list[Path]:
    """Those that lie in none of the others, and not in a folder that is the machine's anyway."""
    found = {each.resolve() for each in folders}
    usual = (Path("/usr"), Path("/opt"))
    return sorted(
        each
        for each in found
        if not any(each != other and each.is_relative_to(other) for other in found)
        and not any(each.is_relative_to(system) for system in usual)
    )

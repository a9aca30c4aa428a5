"""Machines on a wire that leads nowhere else, of which none has Weft, and what somebody types there."""

import os
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from weft_testing.lan import Lan
from weft_testing.story import MeshUnderTest
from weft_testing.wired_mesh import Door, client

INSTALL_S = 600.0
PYTHON = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"


@dataclass
class Bare:
    """The machines, and the mesh of one of them once it is up."""

    lan: Lan
    folder: Path
    stack: ExitStack
    mesh: MeshUnderTest | None = None

    def prefix(self, machine: str) -> Path:
        """Where a machine's Weft comes."""
        return self.folder / machine / "weft"

    def run(self, machine: str, command: Sequence[str], **settings: str) -> subprocess.CompletedProcess[str]:
        """Run a command on a machine, in a clean folder of a user who has nothing."""
        return subprocess.run(
            self.lan[machine].argv(command),
            cwd=self.home(machine),
            env=self.environment(machine) | settings,
            capture_output=True,
            text=True,
            check=False,
            timeout=INSTALL_S,
            stdin=subprocess.DEVNULL,
        )

    def home(self, machine: str) -> Path:
        made = self.folder / machine / "home"
        if not made.exists():
            made.mkdir(parents=True)
            # Whoever may write there could have left these.
            for name in ("venv", "zipfile", "platform", "weft_cli", "weft_worker_agent"):
                (made / f"{name}.py").write_text("raise SystemExit('it ran what lies in the current folder')\n")
        return made

    def environment(self, machine: str) -> dict[str, str]:
        return {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.home(machine)),
            "LC_ALL": "C.UTF-8",
            "PIP_CONFIG_FILE": os.devnull,
            "WEFT_PYTHON": str(PYTHON),
            "WEFT_PREFIX": str(self.prefix(machine)),
        }

    def serve(self, machine: str, python: Path) -> MeshUnderTest:
        """Bring a mesh up on a machine, for others, by a Python that has Weft."""
        gate = self.lan[machine]

        def installed(command: Sequence[str]) -> list[str]:
            assert sys.executable == command[0]
            return gate.argv([str(python), *command[1:]])

        (self.folder / "mesh").mkdir()
        # What was installed runs there, and not the tree that a sabotaged story's own processes are pointed to.
        mesh = MeshUnderTest(self.folder / "mesh", inside=installed, WEFT_ALLOW_ANONYMOUS="1", PYTHONPATH="")
        self.stack.callback(mesh.close)
        mesh.up("--listen", "0.0.0.0")
        door = Door(gate, f"unix:{self.folder}/door", f"tcp:127.0.0.1:{urlsplit(mesh.url).port}")
        self.stack.callback(door.close)
        mesh.http.close()
        mesh.http = client(self.folder / "door", authority=mesh.state / "trust" / "authority.pem")
        self.mesh = mesh
        return mesh

    def line(self) -> str:
        """The line for machines that have no Weft, as `status` prints it."""
        assert self.mesh is not None
        said = self.mesh.weft("status").stdout
        return next((each.strip() for each in said.splitlines() if each.strip().startswith("curl ")), said)

    @contextmanager
    def pasted(self, machine: str, line: str, log: Path, **settings: str) -> Generator["subprocess.Popen[bytes]"]:
        """A shell into which the line was pasted as it stands; it ends with the worker, and that at the end."""
        lifeline, held = os.pipe()
        with log.open("wb") as out:
            shell = subprocess.Popen(
                self.lan[machine].argv(["sh"]),
                cwd=self.home(machine),
                env=self.environment(machine) | settings | {"WEFT_LIFELINE_FD": str(lifeline)},
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=out,
                pass_fds=(lifeline,),
                start_new_session=True,
            )
        assert shell.stdin is not None
        shell.stdin.write(f"{line}\n".encode())
        shell.stdin.close()
        os.close(lifeline)
        try:
            yield shell
        finally:
            os.close(held)
            shell.wait(90)


class Changed:
    """A file that holds something else for a while."""

    def __init__(self, file: Path, content: bytes) -> None:
        self._file = file
        self._kept = file.with_name(f".{file.name}.kept")
        self._content = content

    def __enter__(self) -> None:
        self._file.rename(self._kept)  # it may be a link to a file that is used elsewhere
        self._file.write_bytes(self._content)

    def __exit__(self, *_: object) -> None:
        self._kept.replace(self._file)

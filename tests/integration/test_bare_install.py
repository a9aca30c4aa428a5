"""Machines without a network, and without Weft: one is installed from a bundle and serves, and another becomes a worker
by the line that the first one prints. Of neither does anything that was tampered with run."""

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest
from weft_embedded.bundle import making, own_packages
from weft_embedded.bundle.contents import OWN, SUMS, digest_of, listed
from weft_testing.lan import Lan, wired
from weft_testing.story import MeshUnderTest, until
from weft_testing.wired_mesh import Door, client

pytestmark = pytest.mark.slow
FIRST, SECOND = "gate", "late"
BUNDLE_S = 600.0
INSTALL_S = 600.0
PYTHON = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"


@dataclass
class Bare:
    """Two machines on a wire that leads nowhere else, and a bundle that was carried there."""

    lan: Lan
    folder: Path
    bundle: Path
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

    def line(self) -> str:
        """The line for machines that have no Weft, as `status` prints it."""
        assert self.mesh is not None
        said = self.mesh.weft("status").stdout
        return next((each.strip() for each in said.splitlines() if each.strip().startswith("curl ")), said)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bare]:
    folder = tmp_path_factory.mktemp("bare")
    made = subprocess.run(
        [sys.executable, "-m", "weft_cli", "bundle", str(folder / "bundle")],
        capture_output=True,
        text=True,
        check=False,
        timeout=BUNDLE_S,
    )
    assert 0 == made.returncode, made.stderr
    with wired(FIRST, SECOND) as lan, ExitStack() as stack:
        yield Bare(lan, folder, folder / "bundle", stack=stack)


@pytest.fixture(scope="module")
def serving(bare: Bare) -> Bare:
    """The first machine is installed from the bundle, and its mesh is up for others."""
    done = bare.run(FIRST, ["sh", str(bare.bundle / "install")])
    assert 0 == done.returncode, done.stdout + done.stderr
    python = next((bare.prefix(FIRST) / "versions").iterdir()) / "venv" / "bin" / "python"
    gate = bare.lan[FIRST]

    def installed(command: Sequence[str]) -> list[str]:
        assert sys.executable == command[0]
        return gate.argv([str(python), *command[1:]])

    (bare.folder / "mesh").mkdir()
    mesh = MeshUnderTest(bare.folder / "mesh", inside=installed, WEFT_ALLOW_ANONYMOUS="1")
    bare.stack.callback(mesh.close)
    mesh.up("--listen", "0.0.0.0")
    door = Door(gate, f"unix:{bare.folder}/door", f"tcp:127.0.0.1:{urlsplit(mesh.url).port}")
    bare.stack.callback(door.close)
    mesh.http.close()
    mesh.http = client(bare.folder / "door", authority=mesh.state / "trust" / "authority.pem")
    bare.mesh = mesh
    return bare


@pytest.mark.sabotage("unchecked-bundle")
def test_a_file_of_a_bundle_that_was_tampered_with_is_named_and_nothing_is_installed(bare: Bare) -> None:
    # given a bundle that lists all that it holds
    held = {each.relative_to(bare.bundle).as_posix() for each in bare.bundle.rglob("*") if each.is_file()}
    assert held - {SUMS} == {each.name for each in listed(bare.bundle)}
    damaged = bare.folder / "damaged"
    shutil.copytree(bare.bundle, damaged, copy_function=os.link)
    wheel = next((damaged / "others").glob("uvicorn-*.whl"))
    content = wheel.read_bytes()
    wheel.unlink()
    wheel.write_bytes(content[:-1] + b"x")
    done = bare.run(SECOND, ["sh", str(damaged / "install")])
    assert 0 != done.returncode
    assert f"{wheel} is not the file that was bundled" in done.stderr
    wheel.unlink()
    done = bare.run(SECOND, ["sh", str(damaged / "install")])
    assert f"{wheel} is missing" in done.stderr
    assert not bare.prefix(SECOND).exists()


@pytest.mark.sabotage("bundle-with-times")
def test_the_same_tree_gives_the_same_bundle_and_one_that_was_installed_gives_it_too(serving: Bare) -> None:
    # given the tree's own packages, built once more
    again = serving.folder / "again"
    own_packages.put(own_packages.installation(), again)
    first = {each.name: each.digest for each in listed(serving.bundle)}
    assert {name: digest for name, digest in first.items() if name.startswith(OWN)} == {
        f"{OWN}/{each.name}": digest_of(each) for each in (again / OWN).iterdir()
    }
    # and one of the machine that was installed from it, as a file
    packed = serving.folder / "packed.tar"
    weft = str(serving.prefix(FIRST) / "bin" / "weft")
    done = serving.run(FIRST, [weft, "bundle", str(packed)])
    assert 0 == done.returncode, done.stderr
    making.pack(serving.bundle, serving.folder / "own.tar")
    assert digest_of(serving.folder / "own.tar") == digest_of(packed)
    assert digest_of(packed) in done.stdout


@pytest.mark.sabotage("unchecked-wheels")
def test_a_machine_without_weft_becomes_a_worker_by_the_line_and_runs_nothing_that_was_tampered_with(
    serving: Bare,
) -> None:
    mesh, line = serving.mesh, serving.line()
    assert mesh is not None
    # given a mesh that answers on a machine without a network
    assert "Paris" in mesh.ask()
    served = mesh.state / "install"
    script = next(served.glob("*.sh"))
    assert script.stem in line
    # and a gateway that serves another script than the line names
    with Changed(script, b"#!/bin/sh\ntouch it-ran\n"):
        done = serving.run(SECOND, ["sh", "-c", line])
        assert 0 != done.returncode
    # or one file that isn't what the script names
    wheel = next(served.glob("*/weft_cli-*.whl"))
    with Changed(wheel, wheel.read_bytes()[:-1] + b"x"):
        done = serving.run(SECOND, ["sh", "-c", line])
        assert 0 != done.returncode
        assert f"{OWN}/{wheel.name} from" in done.stderr
        assert "is not the file that this script names" in done.stderr
    # then nothing of it ran, and nothing is installed
    assert not (serving.home(SECOND) / "it-ran").exists()
    assert not list(serving.prefix(SECOND).glob("bin/*"))
    # when all is as it should be, and the line is pasted as it stands
    log = serving.folder / "late.log"
    lifeline, held = os.pipe()
    with log.open("wb") as out:
        shell = subprocess.Popen(
            serving.lan[SECOND].argv(["sh"]),
            cwd=serving.home(SECOND),
            env=serving.environment(SECOND) | {"WEFT_LIFELINE_FD": str(lifeline)},
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
        name = re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())

        def node() -> dict[str, Any]:
            ended = shell.poll()
            assert ended is None, log.read_text(errors="replace")[-3000:]
            return next((each for each in mesh.status()["nodes"] if each["name"] == name), dict[str, Any]())

        # then it asks to join, and shows its token to nobody
        until("it asks to join", node, INSTALL_S)
        token = line.partition("WEFT_JOIN_TOKEN=")[2].split()[0]
        started = psutil.Process(shell.pid).children(recursive=True)
        assert any("weft_worker_agent" in each.cmdline() for each in started)
        for each in (shell.pid, *(child.pid for child in started)):
            assert token not in Path(f"/proc/{each}/cmdline").read_text()
        for each in started:
            assert token not in Path(f"/proc/{each.pid}/environ").read_text()
        # and once it is approved, it answers
        assert 0 == mesh.weft("nodes", "approve", name).returncode
        until("it is healthy", lambda: node()["state"] == "healthy", 60)
        spec = {
            "source": {"kind": "builtin", "name": "tiny"},
            "engine": "llama.cpp",
            "selector": {"node.name": name},
        }
        mesh.deploy("there", spec).raise_for_status()
        (replica,) = until("it serves", lambda: mesh.ready_replicas("there"), 60)
        assert name == replica["node_name"]
        assert "Paris" in until("it answers", lambda: mesh.ask(model="there"), 30)
    finally:
        os.close(held)  # the worker ends with it, and the shell with the worker
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

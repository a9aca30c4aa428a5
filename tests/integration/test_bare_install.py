"""Machines without a network, and without Weft: one is installed from a bundle and serves, and another becomes a worker
by the line that the first one prints. Of neither does anything that was tampered with run."""

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from weft_embedded.bundle import making, own_packages
from weft_embedded.bundle.contents import OWN, SUMS, digest_of, listed
from weft_testing.lan import wired
from weft_testing.story import until

from .bare_machines import INSTALL_S, Bare, Changed

pytestmark = pytest.mark.slow
FIRST, SECOND = "gate", "late"
BUNDLE_S = 600.0


@dataclass
class Carried(Bare):
    """And a bundle that was carried there."""

    bundle: Path = Path()


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Carried]:
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
        yield Carried(lan, folder, stack, bundle=folder / "bundle")


@pytest.fixture(scope="module")
def serving(bare: Carried) -> Carried:
    """The first machine is installed from the bundle, and its mesh is up for others."""
    done = bare.run(FIRST, ["sh", str(bare.bundle / "install")])
    assert 0 == done.returncode, done.stdout + done.stderr
    python = next((bare.prefix(FIRST) / "versions").iterdir()) / "venv" / "bin" / "python"
    bare.serve(FIRST, python)
    return bare


@pytest.mark.sabotage("unchecked-bundle")
def test_a_file_of_a_bundle_that_was_tampered_with_is_named_and_nothing_is_installed(bare: Carried) -> None:
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
def test_the_same_tree_gives_the_same_bundle_and_one_that_was_installed_gives_it_too(serving: Carried) -> None:
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
    serving: Carried,
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
    with serving.pasted(SECOND, line, log) as shell:
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

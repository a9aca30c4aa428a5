"""Further machines of a mesh under test: `weft worker` as its user runs it, and what an admin does with nodes."""

import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from weft_testing.story import MeshUnderTest, until

ENDS_S = 90.0


@contextmanager
def machine(
    mesh: MeshUnderTest, name: str, token: str, *options: str, folder: str = "", **settings: str
) -> Generator[subprocess.Popen[bytes]]:
    """`weft worker` on another machine; what it says lies in `<folder>.out`. At the end it is told to end."""
    process = start(mesh, name, token, *options, folder=folder, **settings)
    try:
        yield process
    finally:
        end(process)


def start(
    mesh: MeshUnderTest, name: str, token: str, *options: str, folder: str = "", **settings: str
) -> subprocess.Popen[bytes]:
    """The same without an end."""
    state = mesh.folder / (folder or name)
    words = ["worker", "--join", mesh.url, "--token", token, "--name", name, "--state", str(state), *options]
    with said(mesh, folder or name).open("ab") as out:
        return subprocess.Popen(
            [sys.executable, "-m", "weft_cli", *words],
            stdout=out,
            stderr=out,
            stdin=subprocess.DEVNULL,
            env=mesh.environment() | settings,
        )


def end(process: subprocess.Popen[bytes]) -> int:
    """Tell it to end, by force where it doesn't; its exit status."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(ENDS_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)
    return process.returncode


def said(mesh: MeshUnderTest, name: str) -> Path:
    return mesh.folder / f"{name}.out"


def status(process: subprocess.Popen[bytes]) -> int:
    """Its exit status, once it has ended by itself."""
    until("the worker ends", lambda: process.poll() is not None, 60)
    return process.returncode


def done(mesh: MeshUnderTest, *words: str) -> str:
    """What a command that succeeds prints."""
    result = mesh.weft(*words)
    assert 0 == result.returncode, f"{words}: {result.stdout}{result.stderr}"
    return result.stdout


def new_token(mesh: MeshUnderTest, *options: str) -> str:
    """The secret of a new registration token."""
    found = re.search(r"--token (\S+)", done(mesh, "tokens", "create", *options))
    assert found is not None
    return found.group(1)


def node(mesh: MeshUnderTest, ref: str) -> dict[str, Any]:
    return mesh.http.get(f"{mesh.url}/api/nodes/{ref}").json()


def reaches(mesh: MeshUnderTest, name: str, state: str) -> dict[str, Any]:
    """The node of this name once it is in a state."""

    def look() -> dict[str, Any] | None:
        found = node(mesh, name)
        return found if found.get("state") == state else None

    return until(f"{name} is {state}", look, 60)

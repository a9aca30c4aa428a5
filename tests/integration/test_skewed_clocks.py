"""Machines whose clocks are ten minutes off are members like any other (libfaketime on their Python processes)."""

import json
import os
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import libfaketime
import pytest
from weft_testing.machine import machine, new_token
from weft_testing.story import MeshUnderTest, until

LIFE_S = 60
SIMULATED = {"source": {"kind": "simulated"}, "engine": "simulated"}
CLOCKS = {"early": "-600", "late": "+600"}
ANEW = """
import os, sys

if "LD_PRELOAD" not in os.environ:
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], os.environ | {OFF})
"""
"""A Python's `sitecustomize`: it starts anew with these variables, which a worker hands on to none of its processes."""


@contextmanager
def skewed(mesh: MeshUnderTest, name: str, seconds: str, token: str) -> Generator[None]:
    """`weft worker` where every clock that tells the date is so many seconds off, in each of its Python processes."""
    library = Path(libfaketime.__file__).parent / "vendor/libfaketime/src/libfaketime.so.1"
    off = {
        "LD_PRELOAD": str(library),
        "FAKETIME": seconds,
        "DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    folder = mesh.folder / f"{name}-clock"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(ANEW.replace("{OFF}", repr(off)))
    path = os.pathsep.join(filter(None, (str(folder), mesh.environment().get("PYTHONPATH"))))
    with machine(mesh, name, token, "--labels", f"clock={name}", PYTHONPATH=path):
        yield


@pytest.mark.slow
@pytest.mark.sabotage("own-clock-only")
def test_ten_minutes_between_clocks_change_nothing(tmp_path: Path) -> None:
    # given credentials that live for a minute, and a registry that judges silence early
    mesh = MeshUnderTest(tmp_path, WEFT_CREDENTIAL_HOURS=str(LIFE_S / 3600), WEFT_START_GRACE="1")
    mesh.up("--no-model")
    try:
        head = mesh.status()["log"]["position"]
        token = new_token(mesh, "--auto-approve")
        with ExitStack() as machines:
            # when one machine is early and one is late
            for name, seconds in CLOCKS.items():
                machines.enter_context(skewed(mesh, name, seconds, token))
            for name in CLOCKS:
                until(f"{name} is healthy", lambda name=name: state(mesh, name) == "healthy", 90)
                mesh.deploy(name, SIMULATED | {"selector": {"clock": name}}).raise_for_status()
            for name in CLOCKS:
                until(f"{name} serves", lambda name=name: mesh.ready_replicas(name), 60)
            first = {name: credential(mesh, name) for name in CLOCKS}
            # then both serve for longer than two credentials live, and renew them before they end
            ends = time.monotonic() + 2 * LIFE_S
            while time.monotonic() < ends:
                for name in CLOCKS:
                    assert mesh.ask(model=name, max_tokens=4)
                time.sleep(1)
            for name, seconds in CLOCKS.items():
                now = credential(mesh, name)
                assert first[name]["jwt"] != now["jwt"]
                left = now["expires_at"] - (time.time() + int(seconds))
                assert 0 < left < LIFE_S + 5, f"{name}: {left}"
            assert [] == [e for e in mesh.events(head) for f in e["facts"] if f["type"] in ("unhealthy", "offline")]
            assert {"healthy"} == {state(mesh, name) for name in CLOCKS}
            # and only a first poll is refused, whose answer tells the time
            for name in CLOCKS:
                assert (mesh.folder / f"{name}.out").read_text().count("the gateway is not reached") <= 2
    finally:
        mesh.close()


def credential(mesh: MeshUnderTest, name: str) -> dict[str, Any]:
    """What the machine holds; its clock is the machine's."""
    return json.loads((mesh.folder / name / "credential.json").read_text())


def state(mesh: MeshUnderTest, name: str) -> str:
    return str(next((node["state"] for node in mesh.status()["nodes"] if node["name"] == name), ""))

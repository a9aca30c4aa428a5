"""Machines on a wire: they reach one another, not this machine, and a pulled cable stops all of it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from weft_testing.lan import Lan, Machine, NoNamespaces, wired
from weft_testing.waiting import until

_ANSWER = """
import socket
with socket.create_server(("0.0.0.0", 9000)) as server:
    print("ready", flush=True)
    while True:
        peer, address = server.accept()
        peer.sendall(address[0].encode())
        peer.close()
"""
_ASK = """
import socket, sys
with socket.create_connection((sys.argv[1], 9000), timeout=float(sys.argv[2])) as s:
    print(s.recv(100).decode())
"""


@pytest.fixture(scope="module")
def lan() -> Iterator[Lan]:
    with wired("left", "right") as made:
        yield made


@pytest.fixture(scope="module")
def _server(lan: Lan) -> Iterator[None]:
    with subprocess.Popen(lan["right"].argv([sys.executable, "-c", _ANSWER]), stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert b"ready\n" == server.stdout.readline()
        yield
        server.kill()


def ask(machine: Machine, address: str, timeout_s: float = 20.0) -> str:
    """What the server says there; empty where it is not reached in time."""
    done = subprocess.run(
        machine.argv([sys.executable, "-c", _ASK, address, str(timeout_s)]),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.stdout.strip()


@pytest.mark.usefixtures("_server")
def test_a_machine_reaches_another_under_its_own_address(lan: Lan) -> None:
    assert lan["left"].address == ask(lan["left"], lan["right"].address)


@pytest.mark.usefixtures("_server")
async def test_a_pulled_cable_stops_everything_until_it_is_put_back(lan: Lan) -> None:
    left, right = lan["left"], lan["right"]
    # when
    lan.cut("right")
    # then
    assert "" == ask(left, right.address, 1.0)
    # and when
    lan.mend("right")

    # then
    async def answered() -> bool:
        return ask(left, right.address) == left.address

    assert await until(answered)


@pytest.mark.skipif(shutil.which("tc") is None, reason="not run: tc is not here (Debian, Ubuntu: apt install iproute2)")
def test_a_narrowed_cable_has_its_rate_both_ways() -> None:
    with wired("narrow") as lan:
        # when
        lan.narrow("narrow", 200_000_000)
        # then
        way_out = lan["narrow"].argv(["tc", "qdisc", "show", "dev", "eth0"])
        assert "tbf" in (said := subprocess.run(way_out, capture_output=True, text=True, check=True).stdout)
        assert "rate 200Mbit" in said
        assert "rate 200Mbit" in lan.switch("tc", "qdisc", "show", "dev", "port-narrow")


def test_a_command_runs_as_this_user_and_may_not_change_the_network(lan: Lan) -> None:
    whoami = lan["left"].argv([sys.executable, "-c", "import os; print(os.geteuid())"])
    assert f"{os.geteuid()}\n" == subprocess.run(whoami, capture_output=True, text=True, check=True).stdout
    refused = subprocess.run(
        lan["left"].argv(["ip", "link", "set", "eth0", "down"]), capture_output=True, text=True, check=False
    )
    assert refused.returncode
    assert "not permitted" in refused.stderr


def test_only_who_narrows_a_cable_needs_tc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with wired("alone"):
        pass  # machines can be made here
    for tool in ("unshare", "nsenter", "ip", "cat"):
        (tmp_path / tool).symlink_to(shutil.which(tool) or tool)
    monkeypatch.setenv("PATH", str(tmp_path))
    with Lan("alone") as lan:
        assert lan["alone"].address
        with pytest.raises(NoNamespaces, match="tc not found"):
            lan.narrow("alone", 200_000_000)


def test_nothing_is_left_when_it_closes() -> None:
    with wired("alone") as lan:
        pid = lan["alone"].pid
        assert os.path.exists(f"/proc/{pid}")
    assert not os.path.exists(f"/proc/{pid}")


def test_where_no_machines_can_be_made_the_test_is_skipped_by_name_and_fails_under_ci(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"not run: .*unshare"), wired("alone"):
        pass
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=r"not run: .*unshare"), wired("alone"):
        pass

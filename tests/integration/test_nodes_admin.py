"""An operator and their machines: tokens, approval, labels, caps, cordons and removal, by command line and API."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from weft_testing.story import MeshUnderTest, until

SIMULATED = {"source": {"kind": "simulated"}, "engine": "simulated"}
GIB = 1 << 30


@pytest.fixture(scope="module")
def staffed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshUnderTest]:
    """A mesh of one worker without a model; the stories of this file bring further machines."""
    mesh = MeshUnderTest(tmp_path_factory.mktemp("staffed"))
    mesh.up("--no-model")
    try:
        yield mesh
    finally:
        mesh.close()


@contextmanager
def machine(mesh: MeshUnderTest, name: str, token: str, folder: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """`weft worker` on another machine, as its user runs it; what it says lies in `<folder>.out`."""
    state = mesh.folder / (folder or name)
    words = ["worker", "--join", mesh.url, "--token", token, "--name", name, "--state", str(state)]
    with said(mesh, folder or name).open("ab") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "weft_cli", *words],
            stdout=out,
            stderr=out,
            stdin=subprocess.DEVNULL,
            env=mesh._environment(),
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(40)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)


def said(mesh: MeshUnderTest, name: str) -> Path:
    return mesh.folder / f"{name}.out"


def done(mesh: MeshUnderTest, *words: str) -> str:
    """What a command that succeeds prints."""
    result = mesh.weft(*words)
    assert 0 == result.returncode, f"{words}: {result.stderr}"
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


def placed(mesh: MeshUnderTest, model: str) -> dict[str, str]:
    """Node by replica of those that have a place and are wanted."""
    return {r["id"]: r["node_name"] for r in mesh.replicas() if r["model_name"] == model and r["wanted"] and r["node"]}


@pytest.mark.slow
@pytest.mark.sabotage("approving-tokens-approve-all")
def test_a_machine_that_was_turned_away_is_told_why_and_no_token_lets_it_in(staffed: MeshUnderTest) -> None:
    mesh = staffed
    secret = new_token(mesh, "--name", "rack")
    with machine(mesh, "stranger", secret) as stranger:
        # given a machine that waits for approval
        waiting = reaches(mesh, "stranger", "pending")
        assert "stranger" in done(mesh, "nodes", "list", "--status", "pending")
        # when it is turned away
        done(mesh, "nodes", "reject", "stranger", "--reason", "not of this house")
        # then it ends, and its user reads why
        assert 78 == stranger.wait(60)
        assert "not of this house" in said(mesh, "stranger").read_text()
    # and a token that approves brings it back as little
    approving = new_token(mesh, "--auto-approve", "--expires", "1h")
    with machine(mesh, "stranger", approving) as again:
        assert 78 == again.wait(60)
    assert ("rejected", waiting["id"]) == (lambda n: (n["state"], n["id"]))(node(mesh, "stranger"))
    # until an admin says otherwise
    done(mesh, "nodes", "approve", "stranger")
    with machine(mesh, "stranger", secret):
        assert waiting["id"] == reaches(mesh, "stranger", "healthy")["id"]
    # and the tokens are listed without their secrets, and revoked
    listed = done(mesh, "tokens")
    assert "rack" in listed
    assert secret not in listed + json.dumps(mesh.events())
    done(mesh, "tokens", "revoke", "rack")
    with machine(mesh, "latecomer", secret) as latecomer:
        assert 78 == latecomer.wait(60)
    assert "revoked" in said(mesh, "latecomer").read_text()
    assert [(e["fact"]["why"]) for e in mesh.facts("node", "rejected")] == ["not of this house"]


@pytest.mark.slow
@pytest.mark.sabotage("deaf-to-caps")
def test_labels_cordons_and_caps_decide_what_goes_where_and_explain_says_so(staffed: MeshUnderTest) -> None:
    mesh = staffed
    home = mesh.status()["nodes"][0]["name"]
    # given a model that wants a label which no node bears
    mesh.deploy("picky", {**SIMULATED, "selector": {"zone": "a"}, "min_replicas": 2, "max_replicas": 2})
    until("it is unplaceable", lambda: [r for r in mesh.replicas() if r["state"] == "unplaceable"])
    # when the node may take one replica of a model, and gets the label
    done(mesh, "nodes", "max-replicas", home, "1")
    assert "zone=a  (set by an admin)" in done(mesh, "nodes", "label", home, "zone=a")
    # then one is placed, and the other says what keeps it
    until("one is ready", lambda: mesh.ready_replicas("picky"), 60)

    def refused(name: str, words: str) -> bool:
        return words in mesh.weft("explain", name).stdout

    def waiting() -> str | None:
        return next((r["id"] for r in mesh.replicas() if r["model_name"] == "picky" and not r["node"]), None)

    second = until("the other waits", waiting)
    until("it says why", lambda: refused(second, "runs as many replicas of it as its cap allows"))
    # when the cap is given back
    done(mesh, "nodes", "max-replicas", home, "--reset")
    # then it is placed
    until("both are ready", lambda: len(mesh.ready_replicas("picky")) == 2, 60)

    # and a budget keeps a larger one away, until it is lifted
    done(mesh, "nodes", "vram-budget", home, "700MB")
    mesh.deploy("large", {**SIMULATED, "engine_args": {"memory_bytes": GIB // 2}})
    until("it says why", lambda: refused("large", "within its VRAM budget"))
    done(mesh, "nodes", "cordon", home, "--reason", "new fan")
    done(mesh, "nodes", "vram-budget", home, "--reset")
    until("a cordon keeps it away too", lambda: refused_now(mesh, "large", "is cordoned"), 90)
    done(mesh, "nodes", "uncordon", home)
    until("it is ready", lambda: mesh.ready_replicas("large"), 60)
    assert ["new fan"] == [e["fact"]["why"] for e in mesh.facts("node", "cordoned")]
    for model in ("picky", "large"):
        done(mesh, "remove", model)


def refused_now(mesh: MeshUnderTest, model: str, words: str) -> bool:
    return any(words in (r["reason"] or "") for r in mesh.replicas() if r["model_name"] == model)


@pytest.mark.slow
@pytest.mark.sabotage("no-revocation")
def test_a_removed_machine_is_cut_off_its_replicas_move_and_only_its_name_comes_back(staffed: MeshUnderTest) -> None:
    mesh = staffed
    home = mesh.status()["nodes"][0]["name"]
    secret = new_token(mesh, "--auto-approve")
    with ExitStack() as machines:
        guest = machines.enter_context(machine(mesh, "guest", secret))
        before = reaches(mesh, "guest", "healthy")
        # given a replica there and nowhere else
        done(mesh, "nodes", "cordon", home)
        mesh.deploy("mobile", SIMULATED)
        until("it serves there", lambda: mesh.ready_replicas("mobile"), 60)
        assert {"guest"} == set(placed(mesh, "mobile").values())
        done(mesh, "nodes", "uncordon", home)
        # when it is to be removed, that is refused unless forced
        refused = mesh.weft("nodes", "remove", "guest")
        assert (1, True) == (refused.returncode, "force" in refused.stderr)
        done(mesh, "nodes", "remove", "guest", "--force", "--reason", "sold")
        # then its worker ends and says why, and the replica moves
        assert 78 == guest.wait(60)
        assert "was removed" in said(mesh, "guest").read_text()
        until("it moved", lambda: {home} == set(placed(mesh, "mobile").values()), 60)
        until("it serves again", lambda: mesh.ready_replicas("mobile"), 60)
    # and by its key it can't come back, whatever token it has and however it calls itself
    with machine(mesh, "ghost", new_token(mesh, "--auto-approve"), folder="guest") as ghost:
        assert 78 == ghost.wait(60)
    # but another machine may take its name
    with machine(mesh, "guest", secret, folder="guest-2"):
        after = reaches(mesh, "guest", "healthy")
        assert before["id"] != after["id"]
        assert ("removed", "removed") == (
            node(mesh, before["id"])["state"],
            mesh.http.get(f"{mesh.url}/api/nodes?state=removed").json()["items"][0]["state"],
        )
    assert ["sold"] == [e["fact"]["why"] for e in mesh.facts("node", "removed")]

"""An operator and their machines: tokens, approval, labels, caps, cordons and removal, by command line and API."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from weft_testing.machine import done, machine, new_token, node, reaches, said, status
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
        assert 78 == status(stranger)
        assert "not of this house" in said(mesh, "stranger").read_text()
    # and a token that approves brings it back as little
    approving = new_token(mesh, "--auto-approve", "--expires", "1h")
    with machine(mesh, "stranger", approving) as again:
        assert 78 == status(again)
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
        assert 78 == status(latecomer)
    assert "revoked" in said(mesh, "latecomer").read_text()
    assert [(e["fact"]["why"]) for e in mesh.facts("node", "rejected")] == ["not of this house"]


@pytest.mark.slow
@pytest.mark.sabotage("deaf-to-caps")
def test_labels_cordons_and_caps_decide_what_goes_where_and_explain_says_so(staffed: MeshUnderTest) -> None:
    mesh = staffed
    home = mesh.status()["nodes"][0]["name"]
    # given a node that takes one replica of a model, and two are wanted
    done(mesh, "nodes", "max-replicas", home, "1")
    assert "zone=a  (set by an admin)" in done(mesh, "nodes", "label", home, "zone=a")
    mesh.deploy("picky", {**SIMULATED, "selector": {"zone": "a"}, "min_replicas": 2, "max_replicas": 2})
    until("one is ready", lambda: mesh.ready_replicas("picky"), 60)
    until("the other has no place", lambda: unplaceable(mesh, "picky"))
    # then the one without a place says what keeps it
    explained = done(mesh, "explain", unplaceable(mesh, "picky")[0])
    assert "runs as many replicas of it as its cap allows" in explained
    # and gets one as soon as the cap is given back
    done(mesh, "nodes", "max-replicas", home, "--reset")
    until("both are ready", lambda: len(mesh.ready_replicas("picky")) == 2, 60)

    # given a budget, a cordon, and a label that is missing
    done(mesh, "nodes", "vram-budget", home, "700MB")
    mesh.deploy("large", {**SIMULATED, "engine_args": {"memory_bytes": GIB // 2}})
    until("it has no place", lambda: unplaceable(mesh, "large"))
    assert "within its VRAM budget" in done(mesh, "explain", "large")
    done(mesh, "nodes", "cordon", home, "--reason", "new fan")
    mesh.deploy("late", {**SIMULATED, "selector": {"rack": "r1"}})
    until("it has no place", lambda: unplaceable(mesh, "late"))
    assert "lacks the label rack=r1" in done(mesh, "explain", "late")
    mesh.deploy("later", SIMULATED)
    until("it has no place", lambda: unplaceable(mesh, "later"))
    assert "is cordoned" in done(mesh, "explain", "later")
    # when all is lifted, all are served
    done(mesh, "nodes", "vram-budget", home, "--reset")
    done(mesh, "nodes", "label", home, "rack=r1")
    done(mesh, "nodes", "uncordon", home)
    for model in ("large", "late", "later"):
        until(f"{model} is ready", lambda: mesh.ready_replicas(model), 60)  # noqa: B023
    assert ["new fan"] == [e["fact"]["why"] for e in mesh.facts("node", "cordoned")][:1]
    for model in ("picky", "large", "late", "later"):
        done(mesh, "remove", model)


def unplaceable(mesh: MeshUnderTest, model: str) -> list[str]:
    return [r["id"] for r in mesh.replicas() if r["model_name"] == model and r["state"] == "unplaceable"]


@pytest.mark.slow
@pytest.mark.sabotage("mute-return")
def test_a_machine_that_returns_keeps_what_admins_said_and_says_anew_what_it_is(staffed: MeshUnderTest) -> None:
    mesh = staffed
    # given a machine that was approved by hand, labelled, capped and cordoned
    secret = new_token(mesh)
    with machine(mesh, "regular", secret, "--labels", "disk=slow", "--max-replicas-per-model", "5"):
        reaches(mesh, "regular", "pending")
        done(mesh, "nodes", "approve", "regular")
        before = until("it has reported", lambda: reaches(mesh, "regular", "healthy") if report(mesh) else None)
    done(mesh, "nodes", "label", "regular", "zone=a", "disk=fast")
    done(mesh, "nodes", "max-replicas", "regular", "3")
    done(mesh, "nodes", "cordon", "regular")
    # when it returns with half of its processors and another label
    again = ("--labels", "disk=slow,rack=r9", "--max-replicas-per-model", "5")
    with machine(mesh, "regular", secret, *again, WEFT_SHARE="1/2"):
        whole = before["hardware"]["cpus"]
        until("it reports anew", lambda: report(mesh)["cpus"] == whole / 2, 60)
        after = reaches(mesh, "regular", "cordoned")
    # then it is the same node, and what admins said stands over what it says
    assert (before["id"], True, 3) == (after["id"], after["approved"], after["caps"]["replicas_per_model"])
    assert {"zone": "a", "disk": "fast", "rack": "r9"} == {k: after["labels"].get(k) for k in ("zone", "disk", "rack")}
    assert 1 == len([e for e in mesh.facts("node", "approved") if e["key"] == before["id"]])
    # and its own cap holds again where an admin's is given back
    done(mesh, "nodes", "max-replicas", "regular", "--reset")
    assert 5 == node(mesh, "regular")["caps"]["replicas_per_model"]


def report(mesh: MeshUnderTest) -> dict[str, Any]:
    """The hardware that the machine `regular` has reported; empty before it has."""
    return node(mesh, "regular").get("hardware") or {}


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
        # when it is removed by force, without a drain
        done(mesh, "nodes", "remove", "guest", "--force", "--reason", "sold")
        # then its worker ends and says why, and the replica moves
        assert 78 == status(guest)
        assert "was removed" in said(mesh, "guest").read_text()
        until("it moved", lambda: {home} == set(placed(mesh, "mobile").values()), 60)
        until("it serves again", lambda: mesh.ready_replicas("mobile"), 60)
    # and by its key it can't come back, whatever token it has and however it calls itself
    with machine(mesh, "ghost", new_token(mesh, "--auto-approve"), folder="guest") as ghost:
        assert 78 == status(ghost)
    # but another machine may take its name
    with machine(mesh, "guest", secret, folder="guest-2"):
        after = reaches(mesh, "guest", "healthy")
        assert before["id"] != after["id"]
        assert ("removed", "removed") == (
            node(mesh, before["id"])["state"],
            mesh.http.get(f"{mesh.url}/api/nodes?state=removed").json()["items"][0]["state"],
        )
    assert ["sold"] == [e["fact"]["why"] for e in mesh.facts("node", "removed")]


@pytest.mark.slow
@pytest.mark.sabotage("unloads-nothing")
def test_a_model_is_taken_off_one_machine_and_serves_from_another_meanwhile(staffed: MeshUnderTest) -> None:
    mesh = staffed
    home = mesh.status()["nodes"][0]["name"]
    mesh.deploy("handy", SIMULATED)
    until("it serves", lambda: mesh.ready_replicas("handy"), 60)
    assert {home} == set(placed(mesh, "handy").values())
    # given no other machine that could run it, it stays where it must run
    refused = mesh.weft("nodes", "unload", home, "handy")
    assert (1, True) == (refused.returncode, f"only {home} can run it" in refused.stderr)
    with machine(mesh, "spare", new_token(mesh, "--auto-approve")):
        reaches(mesh, "spare", "healthy")
        until("it has reported", lambda: node(mesh, "spare").get("hardware"), 60)
        assert "handy" in done(mesh, "nodes", "models", home)
        # when it is taken off, then it is gone from there and serves elsewhere
        assert f"handy is off {home}" in done(mesh, "nodes", "unload", home, "handy")
        assert {"spare"} == set(placed(mesh, "handy").values())
        assert mesh.ready_replicas("handy")
        assert "handy" not in done(mesh, "nodes", "models", home)
        # and it was replaced before it was retired
        ready = [e for e in mesh.facts("run", "ready") if e["key"].startswith(node(mesh, "spare")["id"])]
        gone = [
            e for e in mesh.facts("model", "scaled") if "handy is unloaded" in e["fact"]["why"] and e["fact"]["retire"]
        ]
        assert ready[0]["sequence"] < gone[0]["sequence"]
        # and so it says itself, where it is asked again
        assert f"handy is not on {home}" in done(mesh, "nodes", "unload", home, "handy")
        done(mesh, "remove", "handy")

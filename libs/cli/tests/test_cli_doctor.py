"""What the doctor makes of what it sees."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest
from weft_api import Status
from weft_cli.doctor import machine, mesh, own_state, probes
from weft_cli.doctor.finding import Finding
from weft_client.units import size
from weft_embedded.state import State
from weft_servers import state_lock
from weft_servers.port import choose

LOG: dict[str, Any] = {"position": 9, "connected": True, "halted": None, "full": None}
NODE: dict[str, Any] = {"id": "n-1", "name": "a", "state": "healthy", "hardware": None, "reason": None}
MODEL: dict[str, Any] = {"id": "m-1", "name": "x", "state": "ready", "reason": None, "ready": 0, "wanted": 1}
WELL: dict[str, Any] = {
    "log": LOG,
    "tables": {"state": "following"},
    "mesh": {"brake": None},
    "nodes": [NODE],
    "models": [{**MODEL, "ready": 1}],
    "replicas": [],
}


def examined(status: dict[str, Any]) -> list[Finding]:
    return mesh.examine(cast("Status", status))


def verdicts(status: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each.verdict, each.do) for each in examined(status) if each.verdict not in ("ok", "note")]


def test_a_mesh_that_is_well_has_nothing_to_do() -> None:
    assert [] == verdicts(WELL)


@pytest.mark.parametrize(
    ("part", "value", "verdict", "do"),
    [
        ("log", {**LOG, "halted": "event of a newer version"}, "problem", "weft logs gateway"),
        ("log", {**LOG, "connected": False}, "problem", "weft logs nats"),
        ("log", {**LOG, "full": "the disk of /s is full"}, "problem", "free some"),
        ("tables", {"state": "away"}, "problem", "weft logs postgres"),
        ("mesh", {"brake": {"silent": 2, "healthy_before": 3}}, "problem", "weft brake lift"),
        ("nodes", [], "problem", "weft worker --join"),
        ("nodes", [{**NODE, "state": "offline"}], "problem", "weft logs a"),
        (
            "nodes",
            [{**NODE, "state": "cut_off", "reason": "it sent much"}],
            "problem",
            "weft nodes resume a",
        ),
        ("nodes", [{**NODE, "state": "pending"}], "warning", "weft nodes approve a"),
        ("models", [{**MODEL, "state": "unservable", "reason": "no GGUF"}], "problem", "weft retry x"),
        ("models", [{**MODEL, "state": "unplaceable", "reason": "no room"}], "problem", "weft explain x"),
        ("models", [{**MODEL, "state": "loading"}], "warning", "weft logs x"),
        ("models", [{**MODEL, "ready": 1, "wanted": 2}], "warning", "weft explain x"),
    ],
)
def test_each_trouble_of_the_mesh_has_its_remedy(part: str, value: Any, verdict: str, do: str) -> None:
    [(found, remedy)] = verdicts({**WELL, part: value})
    assert verdict == found
    assert do in remedy


def test_what_another_version_does_not_say_is_not_judged() -> None:
    older = {part: value for part, value in WELL.items() if part != "tables"}
    older["log"] = {name: value for name, value in LOG.items() if name != "full"}
    assert ["log", "a", "x"] == [each.name for each in examined(older)]
    assert [] == examined({})


def test_accelerators_are_told_and_what_is_not_known_of_them_is_a_warning() -> None:
    card = {"vendor": "nvidia", "name": "H100", "memory": 80 << 30, "budget": 60 << 30, "unified": False}
    hardware = {
        "devices": [{"vendor": "cpu", "name": "Xeon", "memory": 1 << 40}, card, card],
        "unsized": [{"vendor": "intel", "name": "UHD"}],
        "notes": ["AMD's driver is there and its devices are not known"],
    }
    node = {**NODE, "hardware": hardware}

    healthy, devices, unknown = [each for each in examined({**WELL, "nodes": [node]}) if each.area == "node"]

    assert ("ok", "note", "warning") == (healthy.verdict, devices.verdict, unknown.verdict)
    assert "2 × H100 (80.0 GiB, 60.0 GiB to use), UHD (memory not known: not used)" == devices.says
    assert "AMD" in unknown.says


def test_clocks_that_disagree_are_told_by_how_much() -> None:
    assert None is mesh.clock("a", None)
    said = [mesh.clock("a", skew) for skew in (1.0, -30.0, 4000.0)]
    assert ["ok", "warning", "problem"] == [each.verdict for each in said if each is not None]
    assert "30 s behind" in str(said[1])


def test_each_lack_of_the_machine_has_its_remedy(tmp_path: Path) -> None:
    assert "problem" == machine.python((3, 10), "3.10.1").verdict
    assert ("problem", "install it") == (
        machine.needed("libgomp", "it is missing; install it", "there").verdict,
        machine.needed("libgomp", "it is missing; install it", "there").do,
    )
    assert ["problem", "warning", "ok"] == [machine.disk(tmp_path, free << 20).verdict for free in (100, 1000, 9000)]
    assert "192 MiB free are needed and 100 MiB are" in machine.disk(tmp_path, 100 << 20).says
    assert ["warning", "ok"] == [machine.memory(free << 20).verdict for free in (100, 9000)]
    assert ["warning", "ok", "ok"] == [machine.files(limit).verdict for limit in (256, 4096, -1)]
    assert size(100 << 20) in machine.disk(tmp_path, 100 << 20).says


def test_a_lock_that_outlived_its_launcher_is_a_problem_and_looking_takes_nothing(tmp_path: Path) -> None:
    state = State(tmp_path)
    assert "ok" == own_state.lock(state, None).verdict
    with state_lock.acquire(state.lock, "weft up"):
        held = own_state.lock(state, None)
        assert "problem" == held.verdict
        assert "weft up" in held.says
    assert "ok" == own_state.lock(state, None).verdict


def test_what_does_not_answer_is_said_in_a_word() -> None:
    port = choose()[0]
    assert "refused" in probes.over_http("127.0.0.1", port, "/healthz").why
    assert "refused" in str(probes.nats_greets(port))
    assert "it doesn't run" == probes.postgres_answers(Path("/nowhere"))


def test_a_services_own_problems_are_told() -> None:
    assert None is own_state.unhealthy(probes.Answer(200, {}))
    degraded = probes.Answer(200, {"status": "degraded", "problems": {"suspect": "run.n-1: unreadable"}})
    assert "suspect: run.n-1: unreadable" == own_state.unhealthy(degraded)
    said = probes.Answer(503, {"problems": {"projection": "a hole in the log", "suspect": "node.n-1: unreadable"}})
    assert "projection: a hole in the log; suspect: node.n-1: unreadable" == own_state.unhealthy(said)


def test_without_a_mesh_the_folder_the_lock_and_the_port_are_looked_at(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        found = own_state.examine(State(tmp_path), None, pool)
    assert ["folder", "lock", "port"] == [each.name for each in found]


def test_an_upgrade_that_is_not_finished_is_told_with_who_holds_it_up() -> None:
    # given
    node: Any = {"id": "n-1", "name": "rack1-a", "state": "offline", "heard": True}
    # then
    assert mesh.upgrade({"finished": True, "formats": [], "behind": []}) is None
    ready = mesh.upgrade({"finished": False, "formats": [], "behind": []})
    assert ready is not None
    assert "weft upgrade finish" in ready.do
    held = mesh.upgrade({"finished": False, "formats": [], "behind": [node] * 9})
    assert held is not None
    assert "rack1-a and 1 more can't read them" in held.says

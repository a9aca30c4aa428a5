"""What an agent says of its machine, and what it is told by its settings."""

import os
from pathlib import Path

import psutil
import pytest
from pydantic import ValidationError
from weft_contracts.facts.machine import Reported
from weft_worker_agent.outbound.machine.inventory import backends, differs, hardware, report
from weft_worker_agent.outbound.supervisor.environment import AGENT
from weft_worker_agent.settings import WorkerSettings


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("WEFT_"):
            monkeypatch.delenv(name)


def test_workers_that_share_a_machine_report_its_parts(tmp_path: Path) -> None:
    whole, third = hardware(tmp_path, 1), hardware(tmp_path, 3)

    assert whole.memory // 3 == third.memory == third.devices[0].memory
    assert abs(whole.cpus / 3 - third.cpus) < 0.001
    assert whole.memory <= psutil.virtual_memory().total


def test_the_processor_is_the_first_device(tmp_path: Path) -> None:
    device = hardware(tmp_path, 1).devices[0]

    assert (0, "cpu") == (device.index, device.vendor)
    assert device.name


def test_the_installed_engines_and_built_in_models_are_reported(tmp_path: Path) -> None:
    said = report(tmp_path / "not" / "there", 1)

    assert ["llama.cpp", "simulated", "openai"] == [backend.engine for backend in said.backends]
    assert ("tiny", "tiny-embed") == said.builtins
    assert said.hardware.disk_free


def test_the_llama_cpp_that_comes_with_weft_is_reported_for_the_processor_alone() -> None:
    [found] = [backend for backend in backends() if backend.engine == "llama.cpp"]

    assert ("cpu",) == found.vendors, "builds for accelerators come by a recipe"


def test_a_report_is_new_only_if_something_but_a_little_disk_space_changed(tmp_path: Path) -> None:
    before = report(tmp_path, 1)

    def with_disk(free: int) -> Reported:
        return before.model_copy(update={"hardware": before.hardware.model_copy(update={"disk_free": free})})

    old = with_disk(1_000_000)
    assert [True, False, False, True] == [
        differs(old, None),
        differs(old, old),
        differs(with_disk(950_000), old),
        differs(with_disk(800_000), old),
    ]
    assert differs(report(tmp_path, 2), before)


def test_a_report_is_new_if_something_has_room_that_had_none_however_little_came(tmp_path: Path) -> None:
    waits = report(tmp_path, 1, install_folder=tmp_path, room={"d": 1_000_000})
    installs = waits.installs
    assert installs is not None
    assert differs(waits, report(tmp_path, 1, install_folder=tmp_path))

    def with_disk(free: int) -> Reported:
        return waits.model_copy(update={"installs": installs.model_copy(update={"disk_free": free})})

    assert [False, True, True] == [
        differs(with_disk(free), with_disk(before))
        for free, before in ((990_000, 980_000), (1_000_000, 980_000), (980_000, 1_000_000))
    ]


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WEFT_STATE", str(tmp_path))
    monkeypatch.setenv("WEFT_SHARE", "1/4")
    monkeypatch.setenv("WEFT_LABELS", "zone=a, disk=fast")
    monkeypatch.setenv("WEFT_JOIN_TOKEN", "9f3-private")

    settings = WorkerSettings()

    assert (tmp_path, 4, {"zone": "a", "disk": "fast"}) == (settings.state, settings.parts, settings.labels)
    assert "9f3-private" not in repr(settings)


def test_an_agent_inherits_all_of_its_settings_but_the_token_and_no_other_variable_of_wefts() -> None:
    passed = {name for name in AGENT if name.startswith("WEFT_")}
    given_by_the_supervisor = {"WEFT_JOIN_TOKEN", "WEFT_KEEPER_SOCKET", "WEFT_LIFELINE_FD"}
    assert {f"WEFT_{name.upper()}" for name in WorkerSettings.model_fields} - given_by_the_supervisor == passed


def test_the_use_of_accelerators_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_DEVICES", "!nvidia:0")
    monkeypatch.setenv("WEFT_VRAM_BUDGET", "80%")
    monkeypatch.setenv("WEFT_SIMULATE_GPUS", "2x80GB:nvidia")

    use = WorkerSettings().use

    assert ([1], 2) == ([one.number for one in use.choice.of(use.simulated)], len(use.simulated))
    assert use.budget is not None
    assert 80 == use.budget.of(100)


def test_labels_may_be_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_LABELS", '{"zone": "a,b"}')

    assert {"zone": "a,b"} == WorkerSettings().labels


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("WEFT_SHARE", "half"),
        ("WEFT_SHARE", "1/0"),
        ("WEFT_LABELS", "zone"),
        ("WEFT_LABELS", "zo ne=a"),
        ("WEFT_HTTP_PORT", "70000"),
        ("WEFT_NODE_NAME", ""),
        ("WEFT_STOP_TIMEOUT", "0"),
        ("WEFT_DEVICES", "nvida:0"),
        ("WEFT_VRAM_BUDGET", "120%"),
        ("WEFT_SIMULATE_GPUS", "2x80"),
        ("WEFT_NUMA", "on"),
        ("WEFT_HUB", "ftp://hub"),
        ("WEFT_FILES_MOST_BYTES", "0"),
        ("WEFT_SOURCES_ALLOW", "http://there/"),
        ("WEFT_FILES_STORE", "mesh/files"),
        ("WEFT_FILES_STORE", "s3://mesh/files?endpoint=minio:9000"),
    ],
)
def test_a_setting_out_of_range_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)

    with pytest.raises(ValidationError):
        WorkerSettings()


def test_the_server_of_the_meshs_store_counts_as_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert WorkerSettings().mesh_store is None
    monkeypatch.setenv("WEFT_FILES_STORE", "s3://mesh/files?endpoint=http://10.0.0.7:9000")
    settings = WorkerSettings()
    assert settings.mesh_store is not None
    assert "the mesh's store s3://mesh/files" == settings.mesh_store.said
    assert settings.model_sources.reach.names("10.0.0.7", 9000)
    assert not settings.model_sources.reach.names("10.0.0.7", 9001)

"""`weft plan` on the files of this folder: each has what is expected of it beside it, figures and all."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from weft_cli import main

HERE = Path(__file__).parent
EXPECTED = ".expected.yaml"
PLANS = sorted(path for path in HERE.glob("*.yaml") if not path.name.endswith(EXPECTED))
SCORED = ("score", "scores")
"""Of a placement: what the policies' tests hold."""


def plan(path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    monkeypatch.setattr("sys.argv", ["weft", "plan", str(path), "--json"])
    status = main.main()
    return status, json.loads(capsys.readouterr().out)


def test_each_plan_has_its_expectation_and_each_expectation_its_plan() -> None:
    expectations = sorted(path.name.removesuffix(EXPECTED) for path in HERE.glob(f"*{EXPECTED}"))
    assert expectations == [path.stem for path in PLANS]


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_a_plan_comes_out_as_expected(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = yaml.safe_load(path.with_name(path.stem + EXPECTED).read_text())
    status, found = plan(path, monkeypatch, capsys)
    placed = [{key: value for key, value in each.items() if key not in SCORED} for each in found["placements"]]
    assert expected["placements"] == placed
    assert len(expected["refused"]) == len(found["refused"])
    for wanted, refused in zip(expected["refused"], found["refused"], strict=True):
        says = wanted.pop("says")
        assert any(says in why for why in (*refused["rungs"].values(), *refused["nodes"].values()))
        assert wanted == {key: refused[key] for key in wanted}
    assert status == bool(expected["refused"])


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_a_plan_comes_out_the_same_each_time_in_the_documented_shape(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, found = plan(path, monkeypatch, capsys)
    assert (status, found) == plan(path, monkeypatch, capsys)
    assert ["placements", "refused"] == list(found)
    for each in found["placements"]:
        assert ["model", "replica", "rung", "policy", "score", "scores", "members", "evicts"] == list(each)
        assert 0 <= each["score"] <= 1
        assert [*range(len(each["members"]))] == [member["rank"] for member in each["members"]]
        assert all(["node", "rank", "ram", "gpus"] == list(member) for member in each["members"])
    for each in found["refused"]:
        assert ["model", "replica", "rungs", "nodes", "need", "available"] == list(each)
        assert {"one-device", "several-devices", "several-nodes", "partial-offload", "processor"} == set(each["rungs"])
        assert all(each["rungs"].values())

"""The alert rules: each fires where it should and keeps quiet where it should, and has its section for who is woken."""

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from .rule_cases import CASES, Case

ROOT = Path(__file__).parents[3]
RULES = ROOT / "deploy" / "observability" / "prometheus" / "rules"
PAGE = ROOT / "docs" / "alerts.md"
SEVERITIES = {"critical", "warning", "info"}


def promtool() -> str:
    """Where promtool is. Fails where it isn't: what it would have looked at is not checked."""
    found = shutil.which("promtool")
    assert found, "promtool is not here: install Debian's package `prometheus`, which has it"
    return found


def rules(kind: str) -> dict[str, dict[str, Any]]:
    """All rules of a kind (`alert`, `record`), by name."""
    files = [yaml.safe_load(path.read_text()) for path in sorted(RULES.glob("*.yml"))]
    return {rule[kind]: rule for file in files for group in file["groups"] for rule in group["rules"] if kind in rule}


def as_promtool(case: Case, rule: dict[str, Any]) -> list[dict[str, Any]]:
    """A case as promtool takes it: one test that demands the alert, one that demands none."""
    said = rule["annotations"]
    assert case.description is not None or "{{" not in said["description"], "say what its description tells"
    alert = {
        "exp_labels": {**rule["labels"], **case.labels},
        "exp_annotations": {**said, "summary": case.summary, "description": case.description or said["description"]},
    }
    return [
        {
            "name": f"{case.alert} {word}",
            "interval": f"{case.every}m",
            "input_series": [{"series": name, "values": values} for name, values in series.items()],
            "alert_rule_test": [{"alertname": case.alert, "eval_time": f"{case.at}m", "exp_alerts": alerts}],
        }
        for word, series, alerts in (("fires", case.fires, [alert]), ("keeps quiet", case.quiet, []))
    ]


def told(tmp_path: Path, cases: Iterable[Case], folder: Path = RULES) -> subprocess.CompletedProcess[str]:
    """What promtool says of the cases, all at once. It takes all rules that it is given for each case, so that each is
    given its own file's and the recorded ones."""
    known, files = rules("alert"), dict[tuple[str, int], list[dict[str, Any]]]()
    for case in cases:
        (own,) = [path.name for path in RULES.glob("*.yml") if f"alert: {case.alert}\n" in path.read_text()]
        files.setdefault((own, case.every), []).extend(as_promtool(case, known[case.alert]))
    names: list[str] = []
    for (own, every), tests in files.items():
        names.append(str(tmp_path / f"{every}-{own}"))
        given = {"rule_files": [str(folder / "recorded.yml"), str(folder / own)], "tests": tests}
        Path(names[-1]).write_text(yaml.safe_dump({"evaluation_interval": f"{every}m", **given}))
    return subprocess.run([promtool(), "test", "rules", *names], capture_output=True, text=True, check=False)


def test_every_alert_has_a_case_that_fires_and_one_that_keeps_quiet() -> None:
    assert sorted(rules("alert")) == sorted(case.alert for case in CASES)
    assert all(case.fires and case.quiet and case.fires != case.quiet for case in CASES)


def test_each_alert_fires_when_it_should_and_never_else(tmp_path: Path) -> None:
    found = told(tmp_path, CASES)
    assert 0 == found.returncode, found.stdout + found.stderr


@pytest.mark.parametrize("alert", ["WeftBrakeSet", "WeftRequestsFail"])
def test_a_case_notices_that_its_alert_asks_for_something_else(tmp_path: Path, alert: str) -> None:
    folder = tmp_path / "rules"
    shutil.copytree(RULES, folder)
    expr = rules("alert")[alert]["expr"]
    for path in folder.glob("*.yml"):
        path.write_text(path.read_text().replace(f"expr: {expr}", f"expr: ({expr}) and on () vector(0) > 1"))
    (case,) = [case for case in CASES if case.alert == alert]
    found = told(tmp_path, [case], folder)
    assert 0 != found.returncode
    assert alert in found.stdout + found.stderr


def test_every_alert_says_what_is_wrong_how_grave_it_is_and_where_to_read_on() -> None:
    sections = {heading.lower(): heading for heading in re.findall(r"^### (\w+)$", PAGE.read_text(), re.MULTILINE)}
    for name, rule in rules("alert").items():
        said = rule["annotations"]
        assert rule["labels"]["severity"] in SEVERITIES, name
        assert said["summary"], name
        assert said["description"].endswith("."), name
        assert f"docs/alerts.md#{name.lower()}" == said["runbook"], name
        assert name == sections.pop(name.lower(), None), f"docs/alerts.md has no section {name}"
    assert {} == sections, "docs/alerts.md has sections of alerts that are no more"


def test_every_section_says_what_it_means_and_what_to_do() -> None:
    for section in PAGE.read_text().split("\n### ")[1:]:
        name, _, text = section.partition("\n")
        assert "**Means.**" in text, name
        assert "**Do.**" in text, name

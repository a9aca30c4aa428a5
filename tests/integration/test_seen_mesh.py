"""Story: a mesh under load is scraped as it is shipped, and every panel of every dashboard shows what it does."""

import re
from collections.abc import Iterator
from math import isfinite
from typing import Any

import pytest
import yaml
from weft_testing.dashboards import Dashboard, asked, dashboards
from weft_testing.prometheus import Prometheus
from weft_testing.seen_mesh import SHIPPED, SeenMesh, seen_mesh

pytestmark = [pytest.mark.slow, pytest.mark.sabotage("renamed-metric")]

ALL = dashboards(SHIPPED / "grafana" / "dashboards")
RULES = [
    rule
    for path in sorted((SHIPPED / "prometheus" / "rules").glob("*.yml"))
    for group in yaml.safe_load(path.read_text())["groups"]
    for rule in group["rules"]
]
ONLY_IN_TROUBLE = {
    "weft_log_storage_limit_bytes": "an operator's own limit of NATS, which the launcher's server has none of",
}
"""Metrics that a well mesh doesn't tell, and why."""
_METRIC = re.compile(r"\b((?:weft|process)_\w+|gen_ai_\w+_(?:bucket|count|sum)|weft:[\w:]+|up)\b(?:\{([^}]*)\})?")
_LABEL = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SeenMesh, Prometheus]]:
    with seen_mesh(tmp_path_factory.mktemp("seen")) as found:
        yield found


def shown(prometheus: Prometheus, query: str) -> list[dict[str, Any]]:
    """The samples that a panel would draw."""
    return [each for each in prometheus.query(query) if isfinite(float(each["value"][1]))]


@pytest.mark.parametrize("one", ALL, ids=lambda each: each.file)
def test_every_query_of_a_dashboard_has_data_of_a_mesh_under_load(
    seen: tuple[SeenMesh, Prometheus], one: Dashboard
) -> None:
    _, prometheus = seen
    queries = [(panel.title, query) for panel in one.panels for query in panel.queries]
    empty = [(title, query) for title, query in queries if not shown(prometheus, asked(query, one.variables))]
    assert [] == empty


def test_what_is_shown_is_what_was_done_and_only_to_who_may_read_it(seen: tuple[SeenMesh, Prometheus]) -> None:
    mesh, prometheus = seen

    def value(query: str) -> float:
        found = prometheus.query(query)
        assert found, query
        return float(found[0]["value"][1])

    assert 1 == value('max(weft_nodes{state="healthy"})')
    assert 2 == value("max(weft_models)")
    assert 0 < value('weft:output_tokens:rate1m{gen_ai_request_model="tiny"}')
    assert 0 < value('sum(rate(weft_gateway_refused_total{status="404"}[1m]))')
    assert {"tiny", "paced"} == {
        each["metric"]["model"] for each in prometheus.query('weft_gateway_aliased_total{alias="chat"}')
    }
    made = mesh.mesh.http.post(f"{mesh.mesh.url}/api/keys", json={"scopes": ["inference"]}).json()["secret"]
    for path in ("/metrics", "/api/metrics/workers", "/api/load"):
        asked_by = [
            mesh.mesh.http.get(f"{mesh.mesh.url}{path}", headers={"authorization": f"Bearer {key}"}).status_code
            for key in (made, mesh.key)
        ]
        assert [403, 200] == asked_by, path


def test_every_rule_asks_for_what_a_mesh_tells_and_no_alert_fires_of_one_that_is_well(
    seen: tuple[SeenMesh, Prometheus],
) -> None:
    _, prometheus = seen
    for rule in RULES:
        name = rule.get("alert") or rule["record"]
        prometheus.query(rule["expr"])
        asked_for = _METRIC.findall(rule["expr"])
        assert asked_for, name
        for metric, matchers in asked_for:
            if metric in ONLY_IN_TROUBLE:
                continue
            series = prometheus.query(metric)
            assert series, f"{name} asks for {metric}, which nobody tells"
            there = {label for each in series for label in each["metric"]}
            assert set(_LABEL.findall(matchers)) <= there, f"{name}: {metric} has no such labels"
    states = {rule["name"]: rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]}
    assert {rule.get("alert") or rule["record"] for rule in RULES} == set(states)
    assert [] == [name for name, rule in states.items() if rule["health"] != "ok"]
    firing = [each["labels"]["alertname"] for each in prometheus.ask("alerts")["alerts"] if each["state"] == "firing"]
    assert [] == firing

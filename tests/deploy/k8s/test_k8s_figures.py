"""Metrics, rules and jobs that the monitoring here names are those of the code and of Prometheus' own files."""

import importlib.util
import re
from typing import Any

import pytest
import yaml

from .rendered import MANIFESTS, ROOT, of_kind, render

COMPONENTS = MANIFESTS / "components"
_METRIC = re.compile(r'"(weft_[a-z_]+)"')


def told() -> set[str]:
    """Names of metrics that stand in the code."""
    return {
        name
        for top in ("libs", "services")
        for file in (ROOT / top).glob("*/src/**/*.py")
        for name in _METRIC.findall(file.read_text())
    }


def _named(of: dict[str, Any]) -> str:
    return str(of["metadata"]["name"])


def unknown(text: str) -> set[str]:
    """Metrics that a file names and the code doesn't have."""
    return set(re.findall(r"\bweft_[a-z_]+\b", text)) - told()


@pytest.mark.parametrize("file", ["gateway.yaml", "adapter-rule.yaml"])
def test_gateways_are_scaled_by_a_figure_that_they_tell(file: str) -> None:
    text = (COMPONENTS / "autoscaling-by-requests" / file).read_text()
    assert "weft_gateway_running_requests" in text
    assert set() == unknown(text)
    assert {"weft_gateway_running_chats"} == unknown(text.replace("running_requests", "running_chats"))


def test_who_scales_by_requests_takes_one_component_for_the_other() -> None:
    whole = yaml.safe_load((COMPONENTS / "autoscaling-by-requests/gateway.yaml").read_text())
    by_cpu = yaml.safe_load((COMPONENTS / "autoscaling/gateway.yaml").read_text())
    assert whole["metadata"] == by_cpu["metadata"]  # so kustomize refuses both at once
    assert [{"minReplicas": 2, "maxReplicas": 10}] * 2 == [
        {each: one["spec"][each] for each in ("minReplicas", "maxReplicas")} for one in (whole, by_cpu)
    ]


def test_the_operators_rules_are_prometheus_own() -> None:
    spec = importlib.util.spec_from_file_location("make_rules", MANIFESTS / "make_rules.py")
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = module.made()
    assert made == module.MADE.read_text(), "run: python deploy/k8s/make_rules.py"


def test_as_much_is_taken_of_a_worker_as_prometheus_own_file_says() -> None:
    jobs = yaml.safe_load((ROOT / "deploy/observability/prometheus/prometheus.yml").read_text())["scrape_configs"]
    (told,) = [job for job in jobs if job["job_name"] == "weft-workers"]
    (kept,) = told["metric_relabel_configs"]
    (spec,) = [each["spec"] for each in of_kind(render("production"), "ServiceMonitor") if _named(each) == "worker"]
    assert (told["sample_limit"], told["body_size_limit"]) == (spec["sampleLimit"], spec["bodySizeLimit"])
    (end,) = spec["endpoints"]
    said = {"sourceLabels": kept["source_labels"], "regex": kept["regex"], "action": kept["action"]}
    assert [said] == end["metricRelabelings"]


def test_the_jobs_that_rules_name_are_those_that_monitors_make() -> None:
    objects = render("production")
    parts = ("registry", "scheduler", "reconciler", "metadata-cache")
    jobs: set[str] = set()
    for each in of_kind(objects, "PodMonitor", "ServiceMonitor"):
        for end in each["spec"].get("endpoints", each["spec"].get("podMetricsEndpoints")):
            (relabelling,) = end["relabelings"]
            assert "job" == relabelling["targetLabel"]
            said = relabelling["replacement"]
            jobs |= {said.replace("$1", part) for part in parts} if "$1" in said else {said}
    (rules,) = of_kind(objects, "PrometheusRule")
    text = str(rules["spec"])
    named = re.findall(r'job(=~|!~|!=|=)"([^"]+)"', text)
    assert not [said for how, said in named if how.endswith("=") and said not in jobs]
    assert not [said for how, said in named if how == "=~" and not [job for job in jobs if re.fullmatch(said, job)]]

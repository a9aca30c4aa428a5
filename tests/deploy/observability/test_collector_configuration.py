"""The collector's configuration: whole, bounded, and listening where Weft's processes send to."""

from pathlib import Path
from typing import Any

import yaml
from weft_runtime.settings import ServiceSettings

FILE = Path(__file__).parents[3] / "deploy" / "observability" / "collector" / "collector.yaml"
CONFIG: dict[str, Any] = yaml.safe_load(FILE.read_text())
KINDS = ("receivers", "processors", "exporters")
CORE = {
    "receivers": {"otlp"},
    "processors": {"memory_limiter", "batch"},
    "exporters": {"otlphttp"},
    "extensions": {"health_check"},
}
"""Of the core distribution, those that are used here: a name that it doesn't have keeps the collector from starting."""
BOUNDS = ("limit_mib", "check_interval")


def test_every_component_that_a_pipeline_names_is_configured_and_none_is_left_over() -> None:
    pipelines: dict[str, Any] = CONFIG["service"]["pipelines"]
    assert {"traces", "logs"} == set(pipelines)
    for kind in KINDS:
        assert set(CONFIG[kind]) == {name for each in pipelines.values() for name in each[kind]}
        assert set(CONFIG[kind]) <= CORE[kind]
    assert set(CONFIG["extensions"]) == set(CONFIG["service"]["extensions"]) <= CORE["extensions"]
    assert set(CONFIG) == {*CORE, "service"}


def test_it_takes_otlp_over_http_at_the_port_that_weft_sends_to() -> None:
    http = CONFIG["receivers"]["otlp"]["protocols"]["http"]["endpoint"]
    assert "0.0.0.0:4318" == http
    assert "WEFT_OTLP_ENDPOINT=http://collector:4318" in FILE.read_text()
    assert "otlp_endpoint" in ServiceSettings.model_fields


def test_what_it_holds_is_bounded_before_anything_else_is_done_with_it() -> None:
    for pipeline in CONFIG["service"]["pipelines"].values():
        assert "memory_limiter" == pipeline["processors"][0]
    assert all(CONFIG["processors"]["memory_limiter"][bound] for bound in BOUNDS)
    exporter = CONFIG["exporters"]["otlphttp"]
    assert exporter["sending_queue"]["queue_size"] > 0
    assert exporter["retry_on_failure"]["max_elapsed_time"]


def test_where_it_sends_to_is_said_from_outside_and_no_secret_stands_in_it() -> None:
    exporter = CONFIG["exporters"]["otlphttp"]
    assert exporter["endpoint"].startswith("${env:TRACES_TO:-")
    assert "${env:TRACES_AUTHORIZATION:-}" == exporter["headers"]["authorization"]

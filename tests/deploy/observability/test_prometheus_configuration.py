"""prometheus.yml: every part of a mesh has a job, at the address and port that deployments give it."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml
from weft_contracts.catalogue import SERVICES
from weft_contracts.certificates import GATEWAY, server_name
from weft_gateway.settings import GatewaySettings

FOLDER = Path(__file__).parents[3] / "deploy" / "observability" / "prometheus"
CONFIG: dict[str, Any] = yaml.safe_load((FOLDER / "prometheus.yml").read_text())
JOBS: dict[str, dict[str, Any]] = {job["job_name"]: job for job in CONFIG["scrape_configs"]}
KEY, AUTHORITY = "/run/weft/metrics-key", "/run/weft/authority.pem"


def test_prometheus_takes_it() -> None:
    promtool = shutil.which("promtool")
    assert promtool, "promtool is not here: install Debian's package `prometheus`, which has it"
    words = [promtool, "check", "config", "--syntax-only", str(FOLDER / "prometheus.yml")]
    said = subprocess.run(words, capture_output=True, text=True, check=False)
    assert 0 == said.returncode, said.stderr


def test_every_service_has_a_job_under_its_name_and_workers_have_one() -> None:
    assert {*(f"weft-{name}" for name in SERVICES), "weft-workers"} == set(JOBS)
    for name in SERVICES:
        port = GatewaySettings.model_fields["http_port"].default if name == "gateway" else 9100
        assert [{"targets": [f"{name}:{port}"]}] == JOBS[f"weft-{name}"]["static_configs"]


def test_the_gateway_is_asked_by_its_own_certificate_and_with_a_key() -> None:
    (found,) = JOBS["weft-workers"]["http_sd_configs"]
    assert "https://gateway:8080/api/metrics/workers" == found["url"]
    for asked in (JOBS["weft-gateway"], found):
        assert {"ca_file": AUTHORITY, "server_name": server_name(GATEWAY)} == asked["tls_config"]
        assert KEY == asked["authorization"]["credentials_file"]
    assert "Bearer" == found["authorization"]["type"]  # Prometheus 2.42 sends a bare key where it isn't said


def test_of_a_worker_its_own_metrics_are_taken_and_none_of_the_meshs() -> None:
    job = JOBS["weft-workers"]
    (kept,) = job["metric_relabel_configs"]
    assert (["__name__"], "keep") == (kept["source_labels"], kept["action"])
    taken = re.compile(kept["regex"]).fullmatch
    # its own page's, and what rules and dashboards ask of every process
    page = (FOLDER.parents[2] / "services" / "worker-agent" / "README.md").read_text()
    (line,) = re.findall(r"^- \*\*Metrics\*\*: (.*)$", page, re.M)
    line = line.replace("weft_node_device_{memory,claimed,held,pressure}_bytes", "weft_node_device_memory_bytes")
    own = {*re.findall(r"\bweft_[a-z_]+", line), "weft_service_problems", "weft_service_ready", "weft_service_info"}
    own |= {"weft_log_connected", "process_start_time_seconds", "process_resident_memory_bytes"}
    assert len(own) > 15
    assert [] == [name for name in own if not taken(name)]
    # a service's, by which a worker could tell of the whole mesh
    for name in ("weft_fold_position", "weft_log_limit_bytes", "weft_nodes", "weft_brake", "weft_node_silence_seconds"):
        assert not taken(name), name
    assert job["sample_limit"] == 5000
    assert job["body_size_limit"] == "2MB"


def test_the_rules_beside_it_are_read() -> None:
    assert ["rules/*.yml"] == CONFIG["rule_files"]
    assert {"recorded", "services", "log", "nodes", "models"} == {path.stem for path in FOLDER.glob("rules/*.yml")}

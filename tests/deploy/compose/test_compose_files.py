"""Compose's files are held against the code that they start, and a lie in one is noticed."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from weft_contracts.catalogue import SERVICES

from .compose_files import files, read
from .container_stages import stages
from .faults import PUBLISHED, Subject, faults

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "deploy/compose"
VARIANTS = [(), ("nats-three",), ("gpu-nvidia",), ("gpu-amd-intel",), ("nats-three", "gpu-nvidia")]
STAGES = stages((ROOT / "deploy/images/Containerfile").read_text())
PARTS = (
    "trust",
    "nats",
    "postgres",
    "registry",
    "scheduler",
    "reconciler",
    "metadata-cache",
    "gateway",
    "worker",
    "admin",
    "prometheus",
    "grafana",
    "observer",
)


def lay_out(folder: Path, nats: str, gateways: str = "localhost") -> subprocess.CompletedProcess[str]:
    """Run found.sh as its container does, in a folder instead of /."""
    names = {*PARTS, *(each.partition("=")[0] for each in nats.split())}
    for each in ("keys", "data/nats", "bin", *(f"parts/{name}" for name in names)):
        (folder / each).mkdir(parents=True, exist_ok=True)
    weft = folder / "bin/weft"
    weft.write_text(f'#!/bin/sh\nexec {sys.executable} -m weft_cli "$@"\n')
    weft.chmod(0o755)
    script = re.sub(r"(?<=[ ])/(keys|parts|data)\b", rf"{folder}/\1", (FOLDER / "found.sh").read_text())
    script = script.replace("part=/parts", f"part={folder}/parts").replace("chown ", "true ")
    env = {"PATH": f"{folder}/bin:{os.environ['PATH']}", "HOME": str(folder), "GATEWAYS": gateways, "NODES": "3"}
    return subprocess.run(
        ["/bin/sh"],
        input=script,
        env=env | {"NATS": nats},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture(scope="module")
def laid_out(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """What each part finds in its folder, of a mesh of three servers."""
    folder = tmp_path_factory.mktemp("founded")
    done = lay_out(folder, "nats=nats nats-1=nats-1 nats-2=nats-2")
    assert 0 == done.returncode, done.stderr
    return {each.name: {file.name for file in each.iterdir()} for each in (folder / "parts").iterdir()}


def subject(texts: list[str], laid_out: dict[str, set[str]]) -> Subject:
    return Subject(read(texts), STAGES, FOLDER, laid_out)


@pytest.mark.parametrize("more", VARIANTS, ids=lambda each: "+".join(each) or "alone")
def test_the_files_agree_with_what_they_start(more: tuple[str, ...], laid_out: dict[str, set[str]]) -> None:
    assert [] == faults(subject(files(FOLDER, *more), laid_out))


@pytest.mark.parametrize(
    ("said", "lie"),
    [
        ("WEFT_JOIN_TOKEN_FILE:", "WEFT_JOIN_TOKEN_PATH:"),
        ("WEFT_NATS_CREDENTIALS:", "WEFT_NATS_CREDS:"),
        ("WEFT_POSTGRES_URL_FILE: /run/weft/postgres-url", "WEFT_POSTGRES_URL: postgresql://weft:x@postgres/weft"),
        ("/run/weft/join-token", "/run/weft/token"),
        ("/run/weft/mesh.env; exec python -m weft_gateway", "/run/weft/settings.env; exec python -m weft_gateway"),
        ("keys-scheduler:/run/weft:ro", "keys-gateway:/run/weft:ro"),
        ("keys-worker:/parts/worker", "keys-worker:/parts/workers"),
        ("tls://nats:4222", "tls://nats:4223"),
        ("https://gateway:8080", "https://gateway:8081"),
        ("WEFT_PORT:-8080}:8080", "WEFT_PORT:-8080}:9100"),
        ("127.0.0.1:8222/healthz", "127.0.0.1:8223/healthz"),
        ("target: metadata-cache", "target: metadata"),
        ("}/reconciler:${", "}/scheduler:${"),
        ("WEFT_LOG_LEVEL: ${WEFT_LOG_LEVEL:-info}", "WEFT_LOG_LEVEL: ${WEFT_LOG_LEVEL:-loud}"),
        ("stop_grace_period: 90s", "stop_grace_period: 60s"),
        ("./found.sh:", "./founding.sh:"),
        ("      - gateway:/var/lib/weft\n", ""),
        ("postgres: {condition: service_healthy}", "database: {condition: service_healthy}"),
        ("cap_drop: [ALL]", "cap_drop: [NET_RAW]"),
        ("    restart: \"no\"\n    logging: *logging", "    restart: always\n    logging: *logging"),
        ("- trust:/run/weft-trust:ro", "- trusts:/run/weft-trust:ro"),
    ],
)  # fmt: skip
def test_a_lie_in_the_file_is_noticed(said: str, lie: str, laid_out: dict[str, set[str]]) -> None:
    (text,) = files(FOLDER)
    assert said in text
    assert [] != faults(subject([text.replace(said, lie, 1)], laid_out))


def test_prometheus_finds_what_it_scrapes_and_grafana_finds_prometheus(laid_out: dict[str, set[str]]) -> None:
    whole = subject(files(FOLDER), laid_out)
    mounted = {name: whole.volumes(name) for name in ("prometheus", "grafana", "metrics-key", "collector")}
    given = {source: place for place, source in whole.volumes("found").items()}

    # given Prometheus' own configuration: who it asks is a service, at the port on which its image answers
    config = yaml.safe_load((FOLDER / mounted["prometheus"]["/etc/prometheus"] / "prometheus.yml").read_text())
    targets = [
        each for job in config["scrape_configs"] for one in job.get("static_configs", []) for each in one["targets"]
    ]
    assert {*SERVICES} == {each.partition(":")[0] for each in targets}
    assert [] == [each for each in targets if each.split(":")[1] != STAGES[each.split(":")[0]].env["WEFT_HTTP_PORT"]]

    # and what it shows and believes lies in its own volume: the one by founding, the other by a command of Weft's
    assert "prometheus" == given[mounted["prometheus"]["/run/weft"]].rpartition("/")[2]
    assert mounted["prometheus"]["/run/weft"] == mounted["metrics-key"]["/run/prometheus"]
    read = set(re.findall(r"/run/weft/([a-z.-]+)", json.dumps(config)))
    made = set(re.findall(r"/run/prometheus/([a-z-]+)$", whole.services["metrics-key"]["command"][0], re.MULTILINE))
    assert read == laid_out["prometheus"] | made

    # and Grafana asks the service, and traces go where the collector takes them
    sources = (FOLDER / mounted["grafana"]["/etc/grafana/provisioning"] / "datasources/prometheus.yml").read_text()
    assert f"http://prometheus:{PUBLISHED['prometheus']}" == yaml.safe_load(sources)["datasources"][0]["url"]
    (command,) = whole.services["collector"]["command"]
    collector = FOLDER / mounted["collector"]["/etc/otelcol"] / Path(command.partition("=")[2]).name
    receiver = yaml.safe_load(collector.read_text())["receivers"]["otlp"]["protocols"]["http"]["endpoint"]
    assert f"WEFT_OTLP_ENDPOINT=http://collector:{receiver.rpartition(':')[2]}" in (FOLDER / "README.md").read_text()


def test_every_image_from_outside_is_a_variable() -> None:
    texts = files(FOLDER, "nats-three", "gpu-nvidia", "gpu-amd-intel")
    named = [
        line.split(":", 1)[1].strip()
        for text in texts
        for line in text.splitlines()
        if re.match(r" *(image|BASE|NVIDIA_BASE):", line)
    ]
    assert len(named) > 10
    assert [] == [each for each in named if not each.startswith("${WEFT_")]


def test_the_trust_is_the_registrys_and_the_founders_alone(laid_out: dict[str, set[str]]) -> None:
    whole = subject(files(FOLDER), laid_out)
    assert {"found", "registry", "observer-place"} == {
        each for each in whole.services if "trust" in whole.volumes(each).values()
    }
    assert {"found"} == {each for each in whole.services if "keys" in whole.volumes(each).values()}
    assert [] == [part for part, files in laid_out.items() if part != "trust" and "operator.seed" in files]


def test_founding_again_keeps_the_keys_and_makes_certificates_anew(tmp_path: Path) -> None:
    def kept() -> list[bytes]:
        return [
            (tmp_path / "parts" / each).read_bytes()
            for each in ("admin/admin-key", "worker/join-token", "trust/authority.pem")
        ]

    assert 0 == lay_out(tmp_path, "nats=nats").returncode
    before, certificate = kept(), (tmp_path / "parts/gateway/certificate.pem").read_bytes()
    again = lay_out(tmp_path, "nats=nats", "weft.example.org")
    assert 0 == again.returncode, again.stderr
    assert before == kept()
    assert certificate != (tmp_path / "parts/gateway/certificate.pem").read_bytes()
    assert "weft.example.org" in again.stdout

    # and other servers are refused, since the log would not come along
    refused = lay_out(tmp_path, "nats=nats nats-1=nats-1 nats-2=nats-2")
    assert 1 == refused.returncode
    assert "its log doesn't move" in refused.stderr.lower()

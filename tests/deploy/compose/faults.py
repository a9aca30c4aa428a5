"""What in a compose file doesn't agree with what it starts: a sentence for each."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pydantic_settings import BaseSettings
from weft_gateway.settings import GatewaySettings
from weft_metadata_cache.settings import MetadataCacheSettings
from weft_observer.webhook.settings import WebhookSettings
from weft_reconciler.settings import ReconcilerSettings
from weft_registry.settings import RegistrySettings
from weft_scheduler.settings import SchedulerSettings
from weft_servers.cluster_conf import Member
from weft_worker_agent.outbound.supervisor import join_token
from weft_worker_agent.settings import WorkerSettings

from .container_stages import Stage

SETTINGS: dict[str, type[BaseSettings]] = {
    "registry": RegistrySettings,
    "scheduler": SchedulerSettings,
    "reconciler": ReconcilerSettings,
    "metadata-cache": MetadataCacheSettings,
    "gateway": GatewaySettings,
    "observer": WebhookSettings,
    "worker": WorkerSettings,
    "worker-nvidia": WorkerSettings,
}
COMMANDS = {"WEFT_URL", "WEFT_API_KEY", "WEFT_STATE"}
"""What the `weft` command reads of them; its README says so."""
FOUNDING = {"GATEWAYS", "NATS", "NODES", "SERVERS"}
OUTSIDE = {
    "SSL_CERT_FILE",
    "POSTGRES_USER",
    "POSTGRES_DB",
    "POSTGRES_PASSWORD_FILE",
    "PGDATA",
    "TRACES_TO",
    "TRACES_AUTHORIZATION",
    "GF_SECURITY_ADMIN_PASSWORD__FILE",
    "GF_ANALYTICS_REPORTING_ENABLED",
    "GF_ANALYTICS_CHECK_FOR_UPDATES",
}
SAID = {"WEFT_WEBHOOK_URL": "https://hooks.example.org/weft"}
"""What has no default: whoever starts the part says it."""
MADE_LATER = {"first-model", "relay.creds", "relay.pem", "webhook-secret"}
"""Under /run/weft, by one-shot services."""
PUBLISHED = {"prometheus": "9090", "grafana": "3000"}
"""What their images listen on, by their makers' documents."""
PORT = Member("", "").port
MONITOR = Member("", "").monitor_port
_SECRET = re.compile(r"PASSWORD|TOKEN|SECRET|_KEY|CREDENTIALS|POSTGRES_URL")
_SECONDS = re.compile(r"(\d+)s")


@dataclass(frozen=True)
class Subject:
    """The files, and what they are held against."""

    document: dict[str, Any]
    stages: Mapping[str, Stage]
    folder: Path
    """Where relative paths begin."""
    laid_out: Mapping[str, set[str]]
    """What founding lays out, by part."""

    @property
    def services(self) -> dict[str, dict[str, Any]]:
        """By name."""
        return self.document["services"]

    def target(self, service: str) -> str | None:
        """The target of the Containerfile that a service runs; None: an image from outside."""
        build: dict[str, Any] = self.services[service].get("build", {})
        image: str = self.services[service]["image"]
        own = image.partition("/")[2].partition(":")[0] if image.startswith("weft/") else None
        target: str | None = build.get("target", own)
        return target

    def volumes(self, service: str) -> dict[str, str]:
        """Where what is mounted, by its place in the container."""
        lines: list[str] = self.services[service].get("volumes", [])
        return {line.split(":")[1]: line.split(":")[0] for line in lines}


def faults(subject: Subject) -> list[str]:
    """All that is wrong."""
    checks: tuple[Callable[[Subject], Iterator[str]], ...] = (images, settings, secrets, paths, ports, order, confined)
    return [each for check in checks for each in check(subject)]


def images(subject: Subject) -> Iterator[str]:
    """Each target is one of the Containerfile, under its own name; each image from outside can be chosen."""
    for name, service in subject.services.items():
        target, image = subject.target(name), service["image"]
        if target is None:
            if name not in {"nats", "nats-1", "nats-2", "postgres", "prometheus", "collector", "grafana"}:
                yield f"{name}: nobody knows of the image {image}"
        elif target not in subject.stages:
            yield f"{name}: the Containerfile has no target {target}"
        elif not image.startswith(f"weft/{target}:") and not image.startswith("weft/worker-gpu:"):
            yield f"{name}: builds {target} as {image}"
        elif not image.endswith(f":{subject.stages[target].labels['org.opencontainers.image.version']}"):
            yield f"{name}: {image} is not the version that the Containerfile says"


def settings(subject: Subject) -> Iterator[str]:
    """Each variable is one that its reader knows, with a value that it takes."""
    for name, service in subject.services.items():
        told: dict[str, Any] = service.get("environment", {})
        model = SETTINGS.get(subject.target(name) or "")
        known = (
            OUTSIDE | FOUNDING | COMMANDS if model is None else {f"WEFT_{each.upper()}" for each in model.model_fields}
        )
        if model is WorkerSettings:
            known |= {join_token.FILE}
        yield from (f"{name}: {each} is no setting of it" for each in sorted(told.keys() - known))
        if model is None:
            continue
        given = {
            each: str(value or SAID.get(each, "")) for each, value in told.items() if value is not None or each in SAID
        }
        try:
            with patch.dict(os.environ, given, clear=True):
                model()
        except (ValueError, SystemExit) as error:
            yield f"{name}: its settings can't be used: {error}"


def secrets(subject: Subject) -> Iterator[str]:
    """What is secret comes as a file."""
    for name, service in subject.services.items():
        if "env_file" in service:
            yield f"{name}: env_file puts what it holds into the environment"
        for variable, value in service.get("environment", {}).items():
            if _SECRET.search(variable) and not str(value).startswith("/"):
                yield f"{name}: {variable} names no file"


def paths(subject: Subject) -> Iterator[str]:
    """Volumes are declared and used, files of the tree are there, keys are the part's own and laid out."""
    declared, used = set(subject.document["volumes"]), set[str]()
    given = {source: place.rpartition("/")[2] for place, source in subject.volumes("found").items()}
    for name, service in subject.services.items():
        for source in subject.volumes(name).values():
            if source.startswith("."):
                if not (subject.folder / source).exists():
                    yield f"{name}: {source} is not there"
                continue
            used.add(source)
            if source not in declared:
                yield f"{name}: the volume {source} is not declared"
        keys = subject.volumes(name).get("/run/weft")
        if name == "found" or keys is None:
            continue
        there = subject.laid_out.get(given.get(keys, ""), set())
        text = f"{service.get('environment')} {service.get('command')} {service.get('entrypoint')}"
        for file in re.findall(r"/run/weft/([a-z.-]+)", text):
            if file not in there | MADE_LATER:
                yield f"{name}: /run/weft/{file} is in nothing that it is given"
        if "WEFT_TLS_FOLDER" in service.get("environment", {}) and "certificate.pem" not in there:
            yield f"{name}: {keys} has no certificate"
        if "nats.creds" in there and given.get(keys) != name:
            yield f"{name}: {keys} is another part's"
    yield from (f"the volume {each} is nobody's" for each in sorted(declared - used))


def ports(subject: Subject) -> Iterator[str]:
    """Who is spoken to listens there."""
    gateway = subject.stages["gateway"].env["WEFT_HTTP_PORT"]
    for name, service in subject.services.items():
        told: dict[str, Any] = service.get("environment", {})
        for variable in ("WEFT_GATEWAY_URL", "WEFT_URL"):
            if variable in told and told[variable] != f"https://gateway:{gateway}":
                yield f"{name}: {variable} is not where the gateway listens"
        for url in f"{told.get('WEFT_NATS_URL', '')},{told.get('WEFT_WORKER_NATS_URL', '')}".split(","):
            if url and (
                url[: -len(f":{PORT}")].removeprefix("tls://") not in subject.services or not url.endswith(f":{PORT}")
            ):
                yield f"{name}: there is no NATS server at {url}"
        for line in service.get("ports", []):
            if line.rpartition(":")[2] != {"gateway": gateway, **PUBLISHED}.get(name):
                yield f"{name}: publishes {line}"
        health: dict[str, Any] = service.get("healthcheck", {})
        test = str(health.get("test", ""))
        if "wget" in test and f":{MONITOR}/" not in test:
            yield f"{name}: its health is asked where nothing listens: {test}"


def order(subject: Subject) -> Iterator[str]:
    """Who is waited for is there, and says when it is ready."""
    for name, service in subject.services.items():
        for other, how in service.get("depends_on", {}).items():
            if other not in subject.services:
                yield f"{name}: waits for {other}, which there is not"
                continue
            stage = subject.stages.get(subject.target(other) or "")
            says = "healthcheck" in subject.services[other] or (stage is not None and stage.healthcheck)
            if how["condition"] == "service_healthy" and not says:
                yield f"{name}: waits for the health of {other}, which has no check"
            ends = subject.services[other].get("restart") == "no"
            if how["condition"] == "service_completed_successfully" and not ends:
                yield f"{name}: waits for the end of {other}, which is started again"


def confined(subject: Subject) -> Iterator[str]:
    """Nobody has more than it needs, and everybody has the time that it needs to end."""
    for name, service in subject.services.items():
        if service.get("read_only") is not True or service.get("cap_drop") != ["ALL"]:
            yield f"{name}: writes to its image, or keeps capabilities"
        if "no-new-privileges:true" not in service.get("security_opt", []):
            yield f"{name}: may get privileges"
        if service.get("cap_add") and name not in {"found", "postgres"}:
            yield f"{name}: has {service['cap_add']}"
        model = SETTINGS.get(subject.target(name) or "")
        if model is None:
            continue
        if "memory" not in service["deploy"]["resources"]["limits"]:
            yield f"{name}: has no limit of memory"
        default = {each: about.default for each, about in model.model_fields.items()}
        told = {each.removeprefix("WEFT_").lower(): value for each, value in service["environment"].items()}
        needs = float(default["stop_timeout"]) + float(default.get("finish_wait_s", 0))
        if model is WorkerSettings:
            needs += float(told.get("drain_timeout") or default["drain_timeout"]) + 15
        grace = _SECONDS.fullmatch(service["stop_grace_period"])
        if grace is None or float(grace[1]) < needs:
            yield f"{name}: has {service['stop_grace_period']} to end, and needs {needs:g}s"

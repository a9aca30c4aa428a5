"""What is wrong with a pod by itself: its settings, ports, probes, volumes, times and rights, held against the code."""

import contextlib
import io
import re
from pathlib import PurePosixPath
from typing import Any

from pydantic_settings import BaseSettings
from weft_gateway.settings import GatewaySettings
from weft_metadata_cache.settings import MetadataCacheSettings
from weft_reconciler.settings import ReconcilerSettings
from weft_registry.settings import RegistrySettings
from weft_runtime.settings import ServiceSettings
from weft_scheduler.settings import SchedulerSettings
from weft_worker_agent.outbound.supervisor import environment, join_token, options, supervisor
from weft_worker_agent.settings import WorkerSettings

from .rendered import ROOT, Object, Objects, Workload, workloads

SETTINGS: dict[str, type[BaseSettings]] = {
    "registry": RegistrySettings,
    "scheduler": SchedulerSettings,
    "reconciler": ReconcilerSettings,
    "metadata-cache": MetadataCacheSettings,
    "gateway": GatewaySettings,
    "worker": WorkerSettings,
    "worker-nvidia": WorkerSettings,
}
"""By the image's target, what its program reads."""
SPEAK_TLS = {"gateway", "worker"}
"""Whose own HTTP server speaks TLS; the others' small one, of weft_runtime.web, is plain."""
_OTHERS = {"POD_NAME", "POD_NAMESPACE", "NVIDIA_DRIVER_CAPABILITIES"}
_ENDS_S = 5.0
"""For an interpreter's own end, behind what its settings bound."""
_AT_LEAST_S = {"startupProbe": 300, "livenessProbe": 60}
"""What a probe waits at least: new clusters fetch images; a loop that computes answers late."""
_SECRET_VARIABLES = {"WEFT_POSTGRES_URL", "POSTGRES_PASSWORD", join_token.VARIABLE}
_MEMORY = {"Mi": 1 << 20, "Gi": 1 << 30}


def settings(objects: Objects) -> list[str]:
    """Variables that its program doesn't read or wouldn't take, and secrets that are values."""
    faults: list[str] = []
    for each in workloads(objects):
        if each.target is None:
            faults += [f"{each.name}: {name} is a secret" for name in each.env if name in _SECRET_VARIABLES]
            continue
        if (kind := SETTINGS.get(each.target)) is None:
            faults.append(f"{each.name}: no image has the target {each.target}")
            continue
        known = {f"WEFT_{name.upper()}": field for name, field in kind.model_fields.items()}
        own = {join_token.FILE} if kind is WorkerSettings else set[str]()
        faults += [f"{each.name}: {name} is no setting" for name in each.env if name not in {*known, *own, *_OTHERS}]
        secret = {name for name, field in known.items() if "SecretStr" in str(field.annotation)} | _SECRET_VARIABLES
        faults += [f"{each.name}: {name} is a secret" for name in secret & each.env.keys()]
        if kind is WorkerSettings:
            passed = {*environment.AGENT, *own, "POD_NAME", "POD_NAMESPACE", "NVIDIA_DRIVER_CAPABILITIES"}
            faults += [f"{each.name}: the agent isn't given {name}" for name in each.env.keys() - passed]
        faults += [f"{each.name}: {fault}" for fault in _refused(kind, each)]
    return faults


def _refused(kind: type[BaseSettings], of: Workload) -> list[str]:
    values = {name.removeprefix("WEFT_").lower(): value for name, value in of.env.items() if value}
    given: dict[str, Any] = {name: value for name, value in values.items() if name in kind.model_fields}
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            kind(**given)
        if kind is WorkerSettings:
            options.parse([], {name: value for name, value in of.env.items() if value})
    except SystemExit:
        return said.getvalue().splitlines()
    except ValueError as error:
        return str(error).splitlines()
    return []


def ports(objects: Objects) -> list[str]:
    """Where it listens by its settings, against what the container and its probes name."""
    faults: list[str] = []
    for each in workloads(objects):
        for variable in ("WEFT_HTTP_PORT", "WEFT_GRPC_PORT"):
            if (said := each.env.get(variable)) and int(said) not in each.ports.values():
                faults.append(f"{each.name}: no port of the container is {variable}={said}")
        if each.target is not None:
            listened = {int(each.env.get(name) or 0) for name in ("WEFT_HTTP_PORT", "WEFT_GRPC_PORT")}
            faults += [f"{each.name}: nothing listens on {port}" for port in {*each.ports.values()} - listened]
            if each.env.get("WEFT_HTTP_HOST") != "0.0.0.0":
                faults.append(f"{each.name}: no probe reaches what listens on loopback alone")
        for kind, probe in _probes(each):
            if "httpGet" in probe and probe["httpGet"]["port"] not in each.ports:
                faults.append(f"{each.name}: {kind} asks a port that isn't there: {probe['httpGet']['port']}")
    return faults


def probes(objects: Objects) -> list[str]:
    """Paths, schemes and figures: a new start may mend what liveness asks, and load is nothing of that."""
    faults: list[str] = []
    for each in workloads(objects):
        there = dict(_probes(each))
        missing = {"startupProbe", "livenessProbe", "readinessProbe"} - there.keys()
        if each.target is None:
            continue
        faults += [f"{each.name}: no {kind}" for kind in missing]
        for kind, probe in there.items():
            asked = probe["httpGet"]
            path = "/readyz" if kind == "readinessProbe" else "/healthz"
            if asked["path"] != path:
                faults.append(f"{each.name}: {kind} asks {asked['path']}, and {path} says that")
            if (asked.get("scheme", "HTTP") == "HTTPS") != (each.part in SPEAK_TLS):
                faults.append(f"{each.name}: {kind} speaks another scheme than its server")
            lasts = probe["periodSeconds"] * probe["failureThreshold"]
            if lasts < _AT_LEAST_S.get(kind, 0):
                faults.append(f"{each.name}: {kind} gives up after {lasts} s")
        hours = RegistrySettings.model_fields["waiting_hours"].default
        start = there.get("startupProbe", {"periodSeconds": 0, "failureThreshold": 0})
        if each.part == "worker" and start["periodSeconds"] * start["failureThreshold"] != hours * 3600:
            faults.append(f"{each.name}: it may wait for approval for {hours} h, the startup probe for another time")
    return faults


def _probes(of: Workload) -> list[tuple[str, Any]]:
    return [(kind, probe) for kind, probe in of.container.items() if kind.endswith("Probe")]


def grace(objects: Objects) -> list[str]:
    """Time to end in, against what the program takes by its settings."""
    faults: list[str] = []
    for each in workloads(objects):
        given = each.pod.get("terminationGracePeriodSeconds", 30)
        if each.target is not None and given != (needed := ends_within_s(each)):
            faults.append(f"{each.name}: it has {given} s to end in, and takes up to {needed:g}")
        if each.target == "gateway":
            finish, stop = (_number(each, GatewaySettings, name) for name in ("finish_wait_s", "stop_timeout"))
            if finish + 2.0 > stop:  # what its part of the stop is given beside the requests' own time
                faults.append(f"{each.name}: requests get {finish:g} s of a stop of {stop:g} s")
    return faults


def ends_within_s(of: Workload) -> float:
    """From the deletion of a pod until its program has ended, at the longest."""
    if of.part == "worker":
        drain, stop = (_number(of, WorkerSettings, name) for name in ("drain_timeout", "stop_timeout"))
        by_force = supervisor.AGENT_MARGIN_S + supervisor.HOSTS_TERM_S
        assert by_force <= 15.0, "the worker-agent's README promises that 15 s are enough"
        return drain + stop + 15.0
    before = of.container.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
    return before + _number(of, ServiceSettings, "stop_timeout") + _ENDS_S


def _number(of: Workload, kind: type[BaseSettings], field: str) -> float:
    return float(of.env.get(f"WEFT_{field.upper()}") or kind.model_fields[field].default)


def volumes(objects: Objects) -> list[str]:
    """Mounts without a volume, volumes that nobody mounts, and paths of settings that lie in no mount."""
    faults: list[str] = []
    for each in workloads(objects):
        there = [*(volume["name"] for volume in each.pod.get("volumes", [])), *each.claims]
        mounted = [mount["name"] for mount in each.container.get("volumeMounts", [])]
        faults += [f"{each.name}: the mount {name} has no volume" for name in {*mounted} - {*there}]
        faults += [f"{each.name}: nobody mounts {name}" for name in {*there} - {*mounted}]
        faults += [f"{each.name}: two volumes are called {name}" for name in {*there} if there.count(name) > 1]
        for name, value in each.env.items():
            if value and value.startswith("/") and not _mounted(each, value):
                faults.append(
                    f"{each.name}: {name}={value} is on no volume, and the rest can't be written or isn't there"
                )
        for path, mount in each.mounts.items():
            for variable in re.findall(r"\$\(([A-Z_]+)\)", mount.get("subPathExpr", "")):
                if variable not in each.env:
                    faults.append(f"{each.name}: {path} is named by {variable}, which isn't there")
    return faults


def _mounted(of: Workload, path: str) -> bool:
    return any(PurePosixPath(path).is_relative_to(each) for each in of.mounts)


def rights(objects: Objects) -> list[str]:
    """What the standard `restricted` asks for, and a root file system that nobody writes."""
    faults: list[str] = []
    for each in workloads(objects):
        pod, own = each.pod.get("securityContext", {}), each.container.get("securityContext", {})
        wrong = {
            "it may be root": pod.get("runAsNonRoot") is not True or not pod.get("runAsUser"),
            "it isn't our images' user": each.target is not None and pod.get("runAsUser") != 10001,
            "its group can't read its keys": pod.get("fsGroup") != pod.get("runAsGroup"),
            "no seccomp profile": pod.get("seccompProfile") != {"type": "RuntimeDefault"},
            "it has capabilities": own.get("capabilities") != {"drop": ["ALL"]},
            "it may gain rights": own.get("allowPrivilegeEscalation") is not False,
            "it may write its root": own.get("readOnlyRootFilesystem") is not True,
            "it has a token of the API server": each.pod.get("automountServiceAccountToken") is not False,
            "Services stand in its environment": each.pod.get("enableServiceLinks") is not False,
            "/tmp can't be written": "/tmp" not in each.mounts,
        }
        faults += [f"{each.name}: {fault}" for fault, holds in wrong.items() if holds]
        for volume in each.pod.get("volumes", []):
            source = volume.get("secret") or volume.get("projected")
            if source is not None and source.get("defaultMode") != 0o440:
                faults.append(f"{each.name}: {volume['name']} is readable by others than its group")
    return faults


def resources(objects: Objects) -> list[str]:
    """What it asks for, against what `bench/README.md` measured of it at rest."""
    faults: list[str] = []
    at_rest = _measured()
    for each in workloads(objects):
        said: Object = each.container.get("resources", {})
        asked, most = said.get("requests", {}), said.get("limits", {})
        if not {"cpu", "memory"} <= asked.keys() or "memory" not in most:
            faults.append(f"{each.name}: it says no request of cpu and memory, or no limit of memory")
            continue
        if "cpu" in most:
            faults.append(f"{each.name}: a limit of cpu makes signs of life late")
        if _bytes(asked["memory"]) < 1.2 * at_rest[each.part]:
            faults.append(f"{each.name}: {asked['memory']} are asked for, it has {at_rest[each.part] >> 20} Mi at rest")
        limit = each.env.get("GOMEMLIMIT")
        if limit is not None and not 0.7 < _bytes(limit.removesuffix("B")) / _bytes(most["memory"]) < 0.95:
            faults.append(f"{each.name}: GOMEMLIMIT={limit} doesn't fit its limit {most['memory']}")
    return faults


def _measured() -> dict[str, int]:
    """Bytes of each part at rest, by the bench's table."""
    page = (ROOT / "bench" / "README.md").read_text().partition("## Idle, 60 s")[2].partition("\n## ")[0]
    rows = re.findall(
        r"^\| ([a-z-]+?)(?:-1, its supervisor and its agent)? \| \d+ \| [\d.]+ \| ([\d.]+) \|$", page, re.M
    )
    found = {name: int(float(megabytes) * 1e6) for name, megabytes in rows}
    assert {"nats", "postgres", "registry", "gateway", "worker"} <= found.keys(), "the bench's table has another form"
    return found


def _bytes(text: str) -> int:
    return int(text[:-2]) * _MEMORY[text[-2:]]

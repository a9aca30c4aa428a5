"""What is wrong between objects: selectors, references, images, and kinds that Kubernetes' schemas lack."""

import re
import tomllib
from typing import Any

from weft_contracts import certificates
from weft_embedded import founded_folder, kubernetes_objects

from .pod_faults import SETTINGS
from .rendered import ROOT, Object, Objects, matches, named, of_kind, secret_sources, workloads

_USER = 10001
_OUTSIDE = {"metrics-key"}
"""Secrets that an admin makes by hand."""


def _called(each: Object) -> str:
    return f"{each['kind']} {each['metadata']['name']}"


def whole(objects: Objects) -> list[str]:
    """One namespace, no two of a name, no secret in what is rendered."""
    faults = [f"{_called(each)} holds what is secret" for each in of_kind(objects, "Secret")]
    for each in objects:
        if each["kind"] != "Namespace" and each["metadata"].get("namespace") != "weft":
            faults.append(f"{_called(each)} is in no namespace of ours")
    seen = [_called(each) for each in objects]
    faults += [f"{each} is there twice" for each in {*seen} if seen.count(each) > 1]
    enforced = named(objects, "Namespace", "weft")["metadata"]["labels"].get("pod-security.kubernetes.io/enforce")
    return faults if enforced == "restricted" else [*faults, "the namespace takes pods with more rights"]


def selectors(objects: Objects) -> list[str]:
    """Who selects nobody, or others than its own."""
    faults: list[str] = []
    pods = {each.name: each.labels for each in workloads(objects)}
    for each in workloads(objects):
        selector = each.object["spec"]["selector"]
        if not selector.get("matchLabels") or [name for name, of in pods.items() if matches(selector, of)] != [
            each.name
        ]:
            faults.append(f"{_called(each.object)} doesn't select its own pods alone")
        for rule in _spread(each.pod):
            if not matches(rule["labelSelector"], each.labels):
                faults.append(f"{_called(each.object)} keeps apart from others than its own")
        if each.object["kind"] == "StatefulSet":
            service = each.object["spec"]["serviceName"]
            found = [one for one in of_kind(objects, "Service") if one["metadata"]["name"] == service]
            if not found or not matches({"matchLabels": found[0]["spec"]["selector"]}, each.labels):
                faults.append(f"{_called(each.object)}: no Service {service} gives its pods names")
            elif each.object["spec"].get("podManagementPolicy") != "Parallel" and each.object["spec"]["replicas"] > 1:
                faults.append(f"{_called(each.object)} starts none before the first is ready, which waits for others")
    for each in of_kind(objects, "Service"):
        chosen = [one for one in workloads(objects) if matches({"matchLabels": each["spec"]["selector"]}, one.labels)]
        faults += [] if chosen else [f"{_called(each)} selects nobody"]
        for port in each["spec"]["ports"]:
            for one in chosen:
                if one.ports.get(port["targetPort"]) != port["port"]:
                    faults.append(f"{_called(each)}: {port['name']} is no port {port['port']} of {one.name}")
    for each in of_kind(objects, "PodDisruptionBudget"):
        if not [one for one in pods.values() if matches(each["spec"]["selector"], one)]:
            faults.append(f"{_called(each)} selects nobody")
    guarded = [each["spec"]["selector"] for each in of_kind(objects, "PodDisruptionBudget")]
    for each in workloads(objects):
        if each.object["spec"].get("replicas", 2) > 1 and not [one for one in guarded if matches(one, each.labels)]:
            faults.append(f"{_called(each.object)} has no budget of disruptions")
    for each in of_kind(objects, "HorizontalPodAutoscaler"):
        target = each["spec"]["scaleTargetRef"]
        if "replicas" in named(objects, target["kind"], target["name"])["spec"]:
            faults.append(f"{_called(each)}: its number is set back by each apply")
    return faults


def _spread(pod: Object) -> list[Object]:
    apart = pod.get("affinity", {}).get("podAntiAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", [])
    return [*pod.get("topologySpreadConstraints", []), *apart]


def identities(objects: Objects) -> list[str]:
    """What must outlive a pod, and whom it must not share a machine with."""
    faults: list[str] = []
    for part, state in (("worker", "WEFT_STATE"), ("nats", None)):
        each = next(one for one in workloads(objects) if one.part == part)
        path = each.env.get(state) if state else founded_folder.NATS_DATA
        mount = max((one for one in each.mounts if (path or "").startswith(one)), key=len, default="")
        if each.object["kind"] != "StatefulSet" or each.mounts.get(mount, {}).get("name") not in each.claims:
            faults.append(f"{each.name}: {path} doesn't outlive its pod")
        if "kubernetes.io/hostname" not in [one["topologyKey"] for one in _spread(each.pod)]:
            faults.append(f"{each.name}: two may come to one machine")
        if part == "worker":
            host = f"worker-0.{each.object['spec']['serviceName']}.weft.svc"
            if (each.env.get("WEFT_NODE_NAME"), each.env.get("WEFT_ADVERTISE_HOST")) != ("worker-0", host):
                faults.append(f"{each.name}: it is not called and reached by what outlives its pod")
    return faults


def references(objects: Objects) -> list[str]:
    """Secrets and ConfigMaps that `weft found --kubernetes` doesn't make, by name; trust is the registry's alone."""
    faults: list[str] = []
    made = secret_names(objects) | _OUTSIDE
    for each in workloads(objects):
        used = [name for volume in each.pod.get("volumes", []) for name, _ in secret_sources(volume)]
        faults += [f"{each.name}: nobody makes the Secret {name}" for name in used if name not in made]
        if (kubernetes_objects.TRUST in used) != (each.part == "registry"):
            faults.append(f"{each.name}: the mesh's trust is for the registry alone")
        others = {name for name in used if name in SETTINGS and name != each.part}
        faults += [f"{each.name}: it reads the keys of {name}" for name in others]
        for variable in each.container.get("env", []):
            source: Object = variable.get("valueFrom", {})
            if "secretKeyRef" in source:
                faults.append(f"{each.name}: {variable['name']} would stand in the environment: mount the Secret")
            if source.get("configMapKeyRef", {}).get("name", kubernetes_objects.MESH) != kubernetes_objects.MESH:
                faults.append(f"{each.name}: nobody makes the ConfigMap of {variable['name']}")
    return faults


def secret_names(objects: Objects) -> set[str]:
    """Those that the founding makes for these servers, and what an operator makes."""
    servers = named(objects, "StatefulSet", "nats")["spec"]["replicas"]
    services = {each for each in SETTINGS if not each.startswith("worker")}
    of_clusters = {f"{each['metadata']['name']}-app" for each in of_kind(objects, "Cluster")}
    own = {kubernetes_objects.TRUST, *kubernetes_objects.ALONE, *services}
    return own | of_clusters | {each.name for each in kubernetes_objects.members(servers)}


def images(objects: Objects) -> list[str]:
    """Targets that nobody builds, tags of another version than this tree's, and tags that move."""
    version = tomllib.loads((ROOT / "services/gateway/pyproject.toml").read_text())["project"]["version"]
    containerfile = (ROOT / "deploy/images/Containerfile").read_text()
    targets = re.findall(r"^FROM \S+ AS (\S+)$", containerfile, re.MULTILINE)
    user = f"USER {_USER}:{_USER}\n"
    faults = [] if user in containerfile else [f"images have another user than {_USER}, as whom pods run"]
    for each in workloads(objects):
        tag = each.container["image"].rpartition(":")[2]
        if each.target is None:
            faults += (
                [f"{each.name}: {each.container['image']} moves"] if tag in ("latest", each.container["image"]) else []
            )
        elif each.target not in targets or each.target.removesuffix("-nvidia") != each.part or tag != version:
            faults.append(f"{each.name}: {each.container['image']} is not what builds {each.part} {version}")
    return faults


def operators(objects: Objects) -> list[str]:
    """What other people's operators are told, as far as it names ours."""
    faults: list[str] = []
    services: dict[str, dict[str, Any]] = {
        each["metadata"]["name"]: {port["name"]: port for port in each["spec"]["ports"]}
        for each in of_kind(objects, "Service")
    }
    gateway = certificates.server_name(certificates.GATEWAY)
    authority = {"name": kubernetes_objects.AUTHORITY, "key": kubernetes_objects.CA_FILE}
    for each in of_kind(objects, "ServiceMonitor", "PodMonitor"):
        labels = each["spec"]["selector"]
        pods = [one for one in workloads(objects) if matches(labels, one.labels)]
        faults += [] if pods else [f"{_called(each)} selects nobody"]
        if each["kind"] == "ServiceMonitor":
            chosen = [one for one in of_kind(objects, "Service") if matches(labels, one["metadata"]["labels"])]
            faults += [] if chosen else [f"{_called(each)} selects no Service"]
        for end in each["spec"].get("endpoints", each["spec"].get("podMetricsEndpoints")):
            faults += [
                f"{_called(each)}: {end['port']} is no port of {one.name}"
                for one in pods
                if end["port"] not in one.ports
            ]
            secure = {one.part in ("gateway", "worker") for one in pods}
            if end["path"] != "/metrics" or {end.get("scheme", "http") == "https"} != secure:
                faults.append(f"{_called(each)} asks {end.get('scheme', 'http')} for {end['path']}")
            tls = end.get("tlsConfig", {})
            named_so = tls.get("serverName") == gateway and tls.get("ca", {}).get("configMap") == authority
            if "gateway" in {one.part for one in pods} and not (
                named_so and end.get("authorization", {}).get("credentials")
            ):
                faults.append(f"{_called(each)}: a gateway is believed by its role, and shows metrics to a key")
    for each in of_kind(objects, "HTTPRoute"):
        for rule in each["spec"]["rules"]:
            for end in rule["backendRefs"]:
                if end["port"] not in [port["port"] for port in services.get(end["name"], {}).values()]:
                    faults.append(f"{_called(each)}: there is no {end['name']}:{end['port']}")
            if rule["timeouts"]["request"] != "0s":
                faults.append(f"{_called(each)} cuts streams")
    for each in of_kind(objects, "BackendTLSPolicy"):
        for target in each["spec"]["targetRefs"]:
            if target["sectionName"] not in services.get(target["name"], {}):
                faults.append(f"{_called(each)}: no Service {target['name']} has a port {target['sectionName']}")
        checked = each["spec"]["validation"]
        if (checked["hostname"], [one["name"] for one in checked["caCertificateRefs"]]) != (
            gateway,
            [authority["name"]],
        ):
            faults.append(f"{_called(each)}: a gateway is believed by its role and the mesh's authority")
    for each in of_kind(objects, "Cluster"):
        made = each["spec"]["bootstrap"]["initdb"]
        if (made["database"], made["owner"]) != (founded_folder.DATABASE, founded_folder.DATABASE_USER):
            faults.append(f"{_called(each)} makes another database")
        if each["spec"]["instances"] < 2 or not each["spec"]["storage"]["size"]:
            faults.append(f"{_called(each)} is lost with one machine")
    return faults


def room_of_the_log(objects: Objects) -> list[str]:
    """The registry limits the log by what each server's claim asks for."""
    (claim,) = named(objects, "StatefulSet", "nats")["spec"]["volumeClaimTemplates"]
    asked = claim["spec"]["resources"]["requests"]["storage"]
    (registry,) = [each for each in workloads(objects) if each.target == "registry"]
    said = registry.env.get("WEFT_NATS_STORE_SIZE")
    return [] if said == f"{asked}B" else [f"the log's servers ask for {asked}, and the registry is told {said}"]

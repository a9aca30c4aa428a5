"""Who speaks to whom: by the code, and by what the NetworkPolicies let through."""

import json
from collections.abc import Iterator

from weft_contracts import catalogue, certificates
from weft_contracts.ids import NodeId
from weft_embedded import founded_folder, kubernetes_objects
from weft_identity.operator_mode import OperatorMode
from weft_servers.cluster_conf import Place, render
from weft_worker_agent.inbound.role_check import ALLOWED
from weft_worker_agent.outbound.processes import engine_ports

from .pod_faults import SETTINGS
from .rendered import Object, Objects, matches, of_kind, workload, workloads

Edge = tuple[str, str, int, int]
"""Who, whom, from which port to which."""
ANYBODY = "anybody"
ELSEWHERE = "elsewhere"
DNS = "names"
_SCRAPES = "scrapes"
_TRACES = "traces"


def spoken(objects: Objects) -> set[Edge]:
    """By the code: settings that name others, roles that servers let in, and NATS' own configuration."""
    worker, gateway = workload(objects, "worker"), workload(objects, "gateway")
    files, first = (int(worker.env[name] or 0) for name in ("WEFT_HTTP_PORT", "WEFT_GRPC_PORT"))
    engines = (first, first + engine_ports.RANGE - 1)
    door = int(gateway.env["WEFT_HTTP_PORT"] or 0)
    found = {(ANYBODY, "gateway", door, door)}
    clients, routes = _nats_ports()
    found |= {(each, "nats", clients, clients) for each in (*catalogue.SERVICES, "worker")}
    if routes:
        found.add(("nats", "nats", routes, routes))
    for part, kind in SETTINGS.items():
        if "gateway_url" in kind.model_fields:
            found.add((part.removesuffix("-nvidia"), "gateway", door, door))
        if "postgres_url_file" in kind.model_fields:
            found.add((part, "postgres", 5432, 5432))
        if {"hub", "sources_allow"} <= kind.model_fields.keys():
            found.add((part.removesuffix("-nvidia"), ELSEWHERE, 443, 443))
    found.add(("worker", ELSEWHERE, 80, 80))
    found |= {(_part(role), "worker", files, files) for roles in ALLOWED.values() for role in roles}
    found.add((certificates.GATEWAY, "worker", *engines))
    return found


def _part(role: str) -> str:
    return "worker" if role.startswith(certificates.node_role(NodeId(""))) else role


def _nats_ports() -> tuple[int, int]:
    members = kubernetes_objects.members(3)
    place = Place(listen="0.0.0.0", keys=founded_folder.KEYS, data=founded_folder.NATS_DATA)
    conf = json.loads(render(members[0], members, OperatorMode("o", "s", {}), "secret", place))
    return (int(conf["listen"].rpartition(":")[2]), int(conf["cluster"]["listen"].rpartition(":")[2]))


def network(objects: Objects) -> list[str]:
    """What is spoken and not let through, at either end, and what is let through and nobody speaks."""
    closed = [each["spec"] for each in of_kind(objects, "NetworkPolicy") if each["spec"]["podSelector"] == {}]
    faults = [] if {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]} in closed else ["nobody is shut out"]
    names = [rule["ports"] for each in closed for rule in each.get("egress", [])]
    if [[{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]] != names:
        faults.append("nobody is told what a name means, or is told more")
    faults += _scrapes(objects)
    expected = spoken(objects)
    into = {edge for edge in expected if edge[1] not in (ELSEWHERE, *_unmade(objects))}
    out_of = {edge for edge in expected if edge[0] != ANYBODY and edge[:2] != (ANYBODY, "gateway")}
    # Whom anybody reaches, our own reach too: a policy of theirs alone says so.
    said_into = set(_let_in(objects))
    open_doors = {edge[1:] for edge in said_into if edge[0] == ANYBODY}
    into = {edge for edge in into if edge[0] == ANYBODY or edge[1:] not in open_doors}
    for what, wanted, said in (("in", into, said_into), ("out", out_of, set(_let_out(objects)))):
        faults += [f"not let {what}: {edge}" for edge in sorted(wanted - said)]
        faults += [f"let {what}, and nobody speaks so: {edge}" for edge in sorted(said - wanted)]
    return faults


def _scrapes(objects: Objects) -> list[str]:
    """Whom Prometheus asks and doesn't reach, or reaches and doesn't ask; gateways are reached by all."""
    asked = {
        one.ports[end["port"]]
        for each in of_kind(objects, "ServiceMonitor", "PodMonitor")
        for one in workloads(objects)
        if matches(each["spec"]["selector"], one.labels) and one.part != certificates.GATEWAY
        for end in each["spec"].get("endpoints", each["spec"].get("podMetricsEndpoints"))
    }
    policies = [each["spec"] for each in of_kind(objects, "NetworkPolicy") if each["metadata"]["name"] == _SCRAPES]
    let = {port["port"] for each in policies for rule in each["ingress"] for port in rule["ports"]}
    return [] if asked == let else [f"Prometheus asks ports {sorted(asked)} and is let in to {sorted(let)}"]


def _unmade(objects: Objects) -> set[str]:
    """The database, where it is another's."""
    return set[str]() if "postgres" in _labels(objects) else {"postgres"}


def _labels(objects: Objects) -> dict[str, dict[str, str]]:
    own = {each.part: each.labels for each in workloads(objects)}
    return own | {each["metadata"]["name"]: _of_cluster(each) for each in of_kind(objects, "Cluster")}


def _of_cluster(each: Object) -> dict[str, str]:
    """The labels of pods that CloudNativePG makes."""
    return {"cnpg.io/cluster": each["metadata"]["name"]}


def _policies(objects: Objects) -> list[Object]:
    return [
        each for each in of_kind(objects, "NetworkPolicy") if each["metadata"]["name"] not in (DNS, _SCRAPES, _TRACES)
    ]


def _let_in(objects: Objects) -> Iterator[Edge]:
    labels = _labels(objects)
    for policy in _policies(objects):
        for rule in policy["spec"].get("ingress", []):
            froms = [ANYBODY] if "from" not in rule else [p for peer in rule["from"] for p in _parts(peer, labels)]
            for one in _chosen(policy["spec"]["podSelector"], labels):
                yield from ((other, one, *ports) for other in froms for ports in _ports(rule) if not _own(other, one))


def _let_out(objects: Objects) -> Iterator[Edge]:
    labels = _labels(objects)
    for policy in _policies(objects):
        for rule in policy["spec"].get("egress", []):
            tos = ["postgres"] if "to" not in rule else [p for peer in rule["to"] for p in _parts(peer, labels)]
            for one in _chosen(policy["spec"]["podSelector"], labels):
                yield from ((one, other, *ports) for other in tos for ports in _ports(rule) if not _own(one, other))


def _own(one: str, other: str) -> bool:
    """What an operator's pods speak among themselves and to the API server is theirs."""
    return (one, other) == ("postgres", "postgres")


def _chosen(selector: Object, labels: dict[str, dict[str, str]]) -> list[str]:
    return [part for part, of in labels.items() if matches(selector, of)]


def _parts(peer: Object, labels: dict[str, dict[str, str]]) -> list[str]:
    if "ipBlock" in peer:
        return (
            [ELSEWHERE]
            if "169.254.0.0/16" in peer["ipBlock"].get("except", []) or ":" in peer["ipBlock"]["cidr"]
            else ["the cloud's own address"]
        )
    return _chosen(peer["podSelector"], labels) if "podSelector" in peer else []


def _ports(rule: Object) -> list[tuple[int, int]]:
    return [(each["port"], each.get("endPort", each["port"])) for each in rule["ports"]]

"""Each check of objects against one another can fail."""

import pytest

from . import edges, object_faults, schemas
from .lies import GONE, Lie, container, of, pod, seen, variable
from .rendered import Objects, named

SCRAPED = ("spec", "endpoints", 0)


def twice(objects: Objects) -> None:
    objects.append(named(objects, "Service", "gateway"))


def secret(objects: Objects) -> None:
    objects.append({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x", "namespace": "weft"}, "data": {}})


LIES = {
    # schemas
    "a field that there is not": Lie(
        schemas.schemas, "Deployment gateway, Kubernetes 1.36", container("gateway", "livenesProbe", to={})
    ),
    "a value of another type": Lie(
        schemas.schemas, "replicas", of("Deployment", "registry", "spec", "replicas", to="2")
    ),
    "a kind that is gone": Lie(
        schemas.schemas,
        "no such kind in policy/v1beta1",
        of("PodDisruptionBudget", "nats", "apiVersion", to="policy/v1beta1"),
    ),
    # the whole
    "an object is there twice": Lie(object_faults.whole, "is there twice", twice),
    "a secret is rendered": Lie(object_faults.whole, "holds what is secret", secret),
    "an object is in another namespace": Lie(
        object_faults.whole, "in no namespace of ours", of("Service", "gateway", "metadata", "namespace", to="default")
    ),
    # selectors
    "a selector misses its pods": Lie(
        object_faults.selectors,
        "its own pods",
        of("Deployment", "gateway", "spec", "selector", "matchLabels", "app.kubernetes.io/name", to="door"),
    ),
    "a Service selects nobody": Lie(
        object_faults.selectors,
        "selects nobody",
        of("Service", "worker", "spec", "selector", "app.kubernetes.io/name", to="node"),
    ),
    "a Service's port is none of the pods'": Lie(
        object_faults.selectors, "is no port 443", of("Service", "gateway", "spec", "ports", 0, "port", to=443)
    ),
    "a budget guards nobody": Lie(
        object_faults.selectors,
        "no budget",
        of("PodDisruptionBudget", "gateway", "spec", "selector", "matchLabels", to={"a": "b"}),
    ),
    "workers have no names": Lie(
        object_faults.selectors,
        "gives its pods names",
        of("StatefulSet", "worker", "spec", "serviceName", to="workers"),
    ),
    "servers that need one another start one after the other": Lie(
        object_faults.selectors,
        "waits for others",
        of("StatefulSet", "nats", "spec", "podManagementPolicy", to="OrderedReady"),
    ),
    "pods keep apart from others": Lie(
        object_faults.selectors,
        "keeps apart from others",
        pod("gateway", "topologySpreadConstraints", 0, "labelSelector", "matchLabels", to={"a": "b"}),
    ),
    "an apply sets back what load has set": Lie(
        object_faults.selectors, "set back", of("Deployment", "gateway", "spec", "replicas", to=2)
    ),
    # identities
    "a worker's key is lost with its pod": Lie(
        object_faults.identities, "doesn't outlive its pod", variable("worker", "WEFT_STATE", "/tmp/worker")
    ),
    "two workers come to one machine": Lie(
        object_faults.identities, "two may come to one machine", pod("worker", "affinity", to={})
    ),
    "a worker is reached by another name": Lie(
        object_faults.identities, "called and reached", variable("worker", "WEFT_ADVERTISE_HOST", "$(POD_NAME)")
    ),
    # references
    "a Secret is called otherwise": Lie(
        object_faults.references,
        "nobody makes the Secret gateway-keys",
        pod("gateway", "volumes", 0, "projected", "sources", 0, "secret", "name", to="gateway-keys"),
    ),
    "the database's Secret is of another cluster": Lie(
        object_faults.references,
        "the Secret postgres-app",
        of("Cluster", "postgres", "metadata", "name", to="database"),
    ),
    "another than the registry reads the trust": Lie(
        object_faults.references,
        "for the registry alone",
        pod("scheduler", "volumes", 0, "secret", "secretName", to="trust"),
    ),
    "a service reads another's keys": Lie(
        object_faults.references,
        "it reads the keys of gateway",
        pod("scheduler", "volumes", 0, "secret", "secretName", to="gateway"),
    ),
    "a ConfigMap is called otherwise": Lie(
        object_faults.references,
        "nobody makes the ConfigMap",
        container("gateway", "env", 0, "valueFrom", "configMapKeyRef", "name", to="weft"),
    ),
    # images
    "an image's target is renamed": Lie(
        object_faults.images, "not what builds", container("registry", "image", to="weft/registrar:0.1.0")
    ),
    "an image is another version's": Lie(
        object_faults.images, "not what builds", container("registry", "image", to="weft/registry:0.0.9")
    ),
    "an image's tag moves": Lie(object_faults.images, "moves", container("nats", "image", to="nats:latest")),
    # operators
    "a scrape's port is renamed": Lie(
        object_faults.operators, "is no port", of("ServiceMonitor", "gateway", *SCRAPED, "port", to="http")
    ),
    "a scrape asks another path": Lie(
        object_faults.operators, "asks https", of("ServiceMonitor", "worker", *SCRAPED, "path", to="/stats")
    ),
    "a scrape shows no key": Lie(
        object_faults.operators, "to a key", of("ServiceMonitor", "gateway", *SCRAPED, "authorization", to=GONE)
    ),
    "a route leads nowhere": Lie(
        object_faults.operators,
        "there is no gateway:80",
        of("HTTPRoute", "gateway", "spec", "rules", 0, "backendRefs", 0, "port", to=80),
    ),
    "a route cuts streams": Lie(
        object_faults.operators,
        "cuts streams",
        of("HTTPRoute", "gateway", "spec", "rules", 0, "timeouts", "request", to="60s"),
    ),
    "a gateway is believed by another name": Lie(
        object_faults.operators,
        "by its role",
        of("BackendTLSPolicy", "gateway", "spec", "validation", "hostname", to="gateway.weft.svc"),
    ),
    "the database is called otherwise": Lie(
        object_faults.operators,
        "another database",
        of("Cluster", "postgres", "spec", "bootstrap", "initdb", "database", to="app"),
    ),
    # the network
    "a gateway doesn't reach engines": Lie(
        edges.network,
        "not let out: ('gateway', 'worker', 7100, 8099)",
        of("NetworkPolicy", "gateway", "spec", "egress", 1, "ports", 1, to={"port": 7100}),
    ),
    "workers don't reach the log": Lie(
        edges.network,
        "not let in: ('worker', 'nats', 4222, 4222)",
        of("NetworkPolicy", "nats", "spec", "ingress", 0, "from", 2, to=GONE),
    ),
    "a service reaches workers' files": Lie(
        edges.network,
        "nobody speaks so: ('registry', 'worker', 7000, 7000)",
        of(
            "NetworkPolicy",
            "control",
            "spec",
            "egress",
            0,
            to={
                "to": [{"podSelector": {"matchLabels": {"app.kubernetes.io/name": "worker"}}}],
                "ports": [{"port": 7000}],
            },
        ),
    ),
    "engines ask the cloud who they are": Lie(
        edges.network,
        "the cloud's own address",
        of("NetworkPolicy", "worker", "spec", "egress", 3, "to", 0, "ipBlock", to={"cidr": "0.0.0.0/0"}),
    ),
    "everybody reaches the log": Lie(
        edges.network,
        "nobody speaks so: ('anybody', 'nats'",
        of("NetworkPolicy", "nats", "spec", "ingress", 0, "from", to=GONE),
    ),
    "who isn't named is let in": Lie(
        edges.network, "nobody is shut out", of("NetworkPolicy", "nobody", "spec", "policyTypes", to=["Egress"])
    ),
    "Prometheus is let in to another port": Lie(
        edges.network,
        "is let in to [7000, 9101]",
        of("NetworkPolicy", "scrapes", "spec", "ingress", 0, "ports", 0, "port", to=9101),
    ),
    "names are asked of nobody": Lie(
        edges.network, "what a name means", of("NetworkPolicy", "names", "spec", "egress", to=[])
    ),
    "the file server's port moved": Lie(
        edges.network, "not let in: ('gateway', 'worker', 7001, 7001)", variable("worker", "WEFT_HTTP_PORT", "7001")
    ),
    "the database is for all": Lie(
        edges.network,
        "nobody speaks so: ('anybody', 'postgres'",
        of("NetworkPolicy", "postgres", "spec", "ingress", 0, "from", to=GONE),
        "dev",
    ),
    "the log's servers have less room than the registry is told": Lie(
        object_faults.room_of_the_log,
        "ask for 10Gi, and the registry is told 20GiB",
        of(
            "StatefulSet",
            "nats",
            "spec",
            "volumeClaimTemplates",
            0,
            "spec",
            "resources",
            "requests",
            "storage",
            to="10Gi",
        ),
    ),
    "nobody tells the registry how much room the log has": Lie(
        object_faults.room_of_the_log, "is told None", variable("registry", "WEFT_NATS_STORE_SIZE", GONE), "dev"
    ),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_what_is_made_wrong_between_objects_is_seen(lie: Lie) -> None:
    assert seen(lie)

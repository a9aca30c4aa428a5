"""Each check of a pod by itself can fail."""

import pytest

from . import pod_faults
from .lies import GONE, Lie, container, pod, renamed, seen, variable

LIES = {
    # settings
    "a setting is renamed": Lie(
        pod_faults.settings,
        "WEFT_NATS_CREDENTIAL is no setting",
        renamed("registry", "WEFT_NATS_CREDENTIALS", "WEFT_NATS_CREDENTIAL"),
    ),
    "a setting is another service's": Lie(
        pod_faults.settings, "WEFT_TRUST is no setting", variable("gateway", "WEFT_TRUST", "/run/weft")
    ),
    "a setting is out of its range": Lie(
        pod_faults.settings, "WEFT_FINISH_WAIT_S", variable("gateway", "WEFT_FINISH_WAIT_S", "6000")
    ),
    "a worker's drain is out of its range": Lie(
        pod_faults.settings, "drain_timeout", variable("worker", "WEFT_DRAIN_TIMEOUT", "4000")
    ),
    "an agent isn't handed a variable": Lie(
        pod_faults.settings, "the agent isn't given WEFT_LIFELINE_FD", variable("worker", "WEFT_LIFELINE_FD", "3")
    ),
    "a password is a value": Lie(
        pod_faults.settings,
        "WEFT_POSTGRES_URL is a secret",
        variable("gateway", "WEFT_POSTGRES_URL", "postgresql://u:p@h/d"),
    ),
    "a token is a value": Lie(pod_faults.settings, "is a secret", variable("worker", "WEFT_HUB_TOKEN", "t")),
    "Postgres' password is a value": Lie(
        pod_faults.settings, "POSTGRES_PASSWORD is a secret", variable("postgres", "POSTGRES_PASSWORD", "p"), "dev"
    ),
    # ports
    "a port of the settings moved": Lie(
        pod_faults.ports, "WEFT_HTTP_PORT=9101", variable("scheduler", "WEFT_HTTP_PORT", "9101")
    ),
    "a port of the container moved": Lie(
        pod_faults.ports, "nothing listens on 9200", container("scheduler", "ports", 0, "containerPort", to=9200)
    ),
    "a probe's port is renamed": Lie(
        pod_faults.ports, "asks a port that isn't there", container("gateway", "ports", 0, "name", to="http")
    ),
    "a service listens on loopback": Lie(
        pod_faults.ports, "loopback", variable("reconciler", "WEFT_HTTP_HOST", "127.0.0.1")
    ),
    # probes
    "liveness asks whether it is ready": Lie(
        pod_faults.probes, "livenessProbe asks", container("gateway", "livenessProbe", "httpGet", "path", to="/readyz")
    ),
    "a probe speaks plainly to TLS": Lie(
        pod_faults.probes, "another scheme", container("worker", "startupProbe", "httpGet", "scheme", to="HTTP")
    ),
    "liveness is in a hurry": Lie(
        pod_faults.probes, "gives up after 20 s", container("gateway", "livenessProbe", "failureThreshold", to=2)
    ),
    "a start is given no time": Lie(
        pod_faults.probes, "gives up after 50 s", container("registry", "startupProbe", "failureThreshold", to=10)
    ),
    "a worker that waits for approval is started again and again": Lie(
        pod_faults.probes, "wait for approval", container("worker", "startupProbe", "failureThreshold", to=60)
    ),
    "a probe is missing": Lie(
        pod_faults.probes, "no readinessProbe", container("metadata-cache", "readinessProbe", to=GONE)
    ),
    # times
    "a worker is killed in its drain": Lie(
        pod_faults.grace, "it has 900 s", pod("worker", "terminationGracePeriodSeconds", to=900)
    ),
    "a drain is longer than its pod's end": Lie(
        pod_faults.grace, "takes up to 1225", variable("worker", "WEFT_DRAIN_TIMEOUT", "1200")
    ),
    "a service is killed in its stop": Lie(
        pod_faults.grace, "takes up to 35", variable("registry", "WEFT_STOP_TIMEOUT", "30")
    ),
    "a gateway's last requests are cut off": Lie(
        pod_faults.grace, "requests get 119 s", variable("gateway", "WEFT_FINISH_WAIT_S", "119")
    ),
    # volumes
    "a mount has no volume": Lie(
        pod_faults.volumes, "the mount trust has no volume", pod("registry", "volumes", 1, "name", to="trusted")
    ),
    "a setting's path moved": Lie(
        pod_faults.volumes, "is on no volume", variable("registry", "WEFT_TRUST", "/run/trust")
    ),
    "a state would be written to the root": Lie(
        pod_faults.volumes, "is on no volume", variable("gateway", "WEFT_STATE", "/var/weft")
    ),
    "a server's own folder has no name": Lie(
        pod_faults.volumes, "named by POD_NAME", renamed("nats", "POD_NAME", "NAME")
    ),
    # rights
    "a pod may be root": Lie(pod_faults.rights, "may be root", pod("nats", "securityContext", "runAsUser", to=0)),
    "a pod is another user than the images'": Lie(
        pod_faults.rights, "images' user", pod("gateway", "securityContext", "runAsUser", to=1000)
    ),
    "keys are another group's": Lie(
        pod_faults.rights, "can't read its keys", pod("registry", "securityContext", "fsGroup", to=1)
    ),
    "keys are readable by all": Lie(
        pod_faults.rights, "readable by others", pod("registry", "volumes", 1, "secret", "defaultMode", to=0o444)
    ),
    "a root file system is written": Lie(
        pod_faults.rights,
        "may write its root",
        container("worker", "securityContext", "readOnlyRootFilesystem", to=False),
    ),
    "a pod has a token of the API server": Lie(
        pod_faults.rights, "a token of the API server", pod("worker", "automountServiceAccountToken", to=True)
    ),
    # resources
    "less memory is asked for than was measured": Lie(
        pod_faults.resources, "64Mi are asked for", container("gateway", "resources", "requests", "memory", to="64Mi")
    ),
    "a limit of cpu": Lie(pod_faults.resources, "late", container("worker", "resources", "limits", "cpu", to="1")),
    "Go's limit is above the pod's": Lie(
        pod_faults.resources, "GOMEMLIMIT", container("nats", "resources", "limits", "memory", to="1Gi")
    ),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_what_is_made_wrong_in_a_pod_is_seen(lie: Lie) -> None:
    assert seen(lie)

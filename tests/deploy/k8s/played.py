"""Pods of an overlay as `podman kube play` takes them: it knows no StatefulSets, and little of volumes and names.

What is left out of a pod is what podman 4.3 can't do: probes (the test asks itself), projected Secrets, claims and
empty folders. Those become folders of this machine with the owners and modes that a kubelet gives them; the names of
Services and pods become lines of /etc/hosts.
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import founded
from .rendered import Object, Workload

GROUP = 10001
_OWN_WAYS = ("startupProbe", "livenessProbe", "readinessProbe", "lifecycle", "resources", "ports")
_CLUSTERS = ("affinity", "topologySpreadConstraints", "enableServiceLinks", "automountServiceAccountToken")


def played(
    of: Workload,
    number: int,
    made: dict[str, founded.Files],
    root: Path,
    images: Mapping[str, str],
    hosts: Mapping[str, str],
) -> Object:
    """The pod of a number, with its files below `root`. `hosts`: addresses by name."""
    name = f"{of.name}-{number}"
    folder = root / name
    founded.lay_out(of, name, made, folder)
    pod: dict[str, Any] = {key: value for key, value in of.pod.items() if key not in _CLUSTERS}
    container: dict[str, Any] = {key: value for key, value in of.container.items() if key not in _OWN_WAYS}
    mounts: list[Object] = []
    volumes: list[Object] = []
    for at, (path, mount) in enumerate(of.mounts.items()):
        lies = folder / path.lstrip("/")
        _as_mounted(lies, claim=mount["name"] in of.claims, secret=mount.get("readOnly", False))
        volumes.append({"name": f"v{at}", "hostPath": {"path": str(lies), "type": "Directory"}})
        mounts.append({"name": f"v{at}", "mountPath": path, "readOnly": mount.get("readOnly", False)})
    told = founded_variables(of, name)
    image = container["image"]
    container |= {"image": images[image.rpartition(":")[0]], "volumeMounts": mounts, "env": told, "name": of.name}
    pod |= {
        "containers": [container],
        "volumes": volumes,
        "hostAliases": [{"ip": address, "hostnames": [host]} for host, address in hosts.items()],
        "hostname": name,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": of.labels}, "spec": pod}


def founded_variables(of: Workload, name: str) -> list[Object]:
    """What a pod is told: of itself in plain words, of the mesh by reference."""
    fields = {"metadata.name": name, "metadata.namespace": "weft"}
    own: dict[str, str] = {}
    told: list[Object] = []
    for each in of.container.get("env", []):
        ref = each.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
        if "configMapKeyRef" in each.get("valueFrom", {}):
            told.append(each)
            continue
        value: str = fields[ref] if ref is not None else each["value"]
        for known, text in own.items():
            value = value.replace(f"$({known})", text)
        own[each["name"]] = value
        told.append({"name": each["name"], "value": value})
    return told


def _as_mounted(folder: Path, *, claim: bool, secret: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if claim:
        os.chown(folder, 0, GROUP)
        folder.chmod(0o2775)
    elif secret:
        for each in (folder, *folder.rglob("*")):
            os.chown(each, 0, GROUP)
        folder.chmod(0o1777)
    else:
        folder.chmod(0o1777)


def gone(root: Path) -> None:
    """Everything that pods wrote."""
    shutil.rmtree(root, ignore_errors=True)

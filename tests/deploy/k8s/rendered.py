"""What kustomize makes of the manifests, as plain objects, and the pods in it."""

import copy
import functools
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[3]
MANIFESTS = ROOT / "deploy" / "k8s"
OVERLAYS = tuple(sorted(each.name for each in (MANIFESTS / "overlays").iterdir()))
NAME = "app.kubernetes.io/name"
POD_NAMES = {"POD_NAME": "worker-0", "POD_NAMESPACE": "weft"}
"""What the cluster says to a pod of itself, for one of them."""
_VARIABLE = re.compile(r"\$\(([A-Z_]+)\)")
_BOUND_S = 60.0

Object = dict[str, Any]
Objects = list[Object]
Check = Callable[[Objects], list[str]]
"""What looks at all objects of an overlay and says its faults, a sentence each."""


def rendered(folder: Path) -> Objects:
    """The objects of a folder with a kustomization."""
    done = subprocess.run(
        [str(Path(sys.executable).with_name("kubectl")), "kustomize", str(folder)],
        capture_output=True,
        text=True,
        timeout=_BOUND_S,
    )
    assert 0 == done.returncode, done.stderr
    assert "" == done.stderr, "kustomize warns of what it will not take any more"
    return [each for each in yaml.load_all(done.stdout, yaml.CSafeLoader) if each]


@functools.cache
def _once(overlay: str) -> Objects:
    return rendered(MANIFESTS / "overlays" / overlay)


def render(overlay: str) -> Objects:
    """An overlay's objects: the caller's own, to change."""
    return copy.deepcopy(_once(overlay))


def of_kind(objects: Objects, *kinds: str) -> Iterator[Object]:
    """Those of these kinds."""
    return (each for each in objects if each["kind"] in kinds)


def named(objects: Objects, kind: str, name: str) -> Object:
    """The one object of a kind with a name."""
    (found,) = (each for each in of_kind(objects, kind) if each["metadata"]["name"] == name)
    return found


def matches(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a label selector (`matchLabels` alone) means an object with these labels; an empty one means all."""
    return all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())


@dataclass(frozen=True)
class Workload:
    """A Deployment or StatefulSet, with what its pods are made of."""

    object: Object

    @property
    def name(self) -> str:
        return self.object["metadata"]["name"]

    @property
    def labels(self) -> dict[str, str]:
        """Of its pods."""
        return self.object["spec"]["template"]["metadata"]["labels"]

    @property
    def part(self) -> str:
        """Which part of the mesh its pods are."""
        return self.labels[NAME]

    @property
    def pod(self) -> Object:
        return self.object["spec"]["template"]["spec"]

    @property
    def container(self) -> Object:
        (only,) = self.pod["containers"]
        return only

    @property
    def target(self) -> str | None:
        """The target of our own image; None for other people's."""
        repository = self.container["image"].rpartition(":")[0]
        return repository.removeprefix("weft/") if repository.startswith("weft/") else None

    @property
    def env(self) -> dict[str, str | None]:
        """Its variables as the container sees them; None where the value is referred to."""
        said: dict[str, str | None] = {each["name"]: each.get("value") for each in self.container.get("env", [])}
        return {name: value and self._resolved(value, said) for name, value in said.items()}

    @property
    def ports(self) -> dict[str, int]:
        return {each["name"]: each["containerPort"] for each in self.container.get("ports", [])}

    @property
    def claims(self) -> list[str]:
        """Names of its claims, which are volumes too."""
        return [each["metadata"]["name"] for each in self.object["spec"].get("volumeClaimTemplates", [])]

    @property
    def mounts(self) -> dict[str, Object]:
        """Its mounts, by path."""
        return {each["mountPath"]: each for each in self.container.get("volumeMounts", [])}

    @staticmethod
    def _resolved(value: str, said: Mapping[str, str | None]) -> str:
        return _VARIABLE.sub(lambda found: said.get(found[1]) or POD_NAMES.get(found[1], found[0]), value)


def workloads(objects: Objects) -> list[Workload]:
    """All that makes pods, but for what an operator does."""
    return [Workload(each) for each in of_kind(objects, "Deployment", "StatefulSet")]


def workload(objects: Objects, name: str) -> Workload:
    """The one with a name."""
    (found,) = (each for each in workloads(objects) if each.name == name)
    return found


def secret_sources(volume: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, str] | None]]:
    """The Secrets of a volume, each with path by key; None: all of its keys under their own names."""
    if "secret" in volume:
        yield volume["secret"]["secretName"], _items(volume["secret"])
    for source in volume.get("projected", {}).get("sources", []):
        yield source["secret"]["name"], _items(source["secret"])


def _items(secret: Mapping[str, Any]) -> Mapping[str, str] | None:
    return {each["key"]: each["path"] for each in secret["items"]} if "items" in secret else None

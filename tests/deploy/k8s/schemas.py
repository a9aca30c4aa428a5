"""Kubernetes' own schemas, strict ones, of some versions: the files of kubernetes-validate, each read once.

Its own function reads 1.8 MB of definitions anew for every object.
"""

import functools
import json
import re
from importlib.resources import files
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from .rendered import Object, Objects

VERSIONS = ("1.35", "1.36", "1.37")
OTHERS = {
    "postgresql.cnpg.io/v1": {"Cluster"},
    "monitoring.coreos.com/v1": {"PodMonitor", "ServiceMonitor", "PrometheusRule"},
    "gateway.networking.k8s.io/v1": {"HTTPRoute", "BackendTLSPolicy"},
}
"""Kinds that operators bring, by their versions: no schema of theirs is here, so their shape is looked at otherwise."""
_known: dict[str, list[str]] = {}
"""What was refused of an object, by its JSON: overlays have most of them in common."""


def schemas(objects: Objects) -> list[str]:
    """What the schemas refuse."""
    faults: list[str] = []
    for each in objects:
        if each["kind"] not in OTHERS.get(each["apiVersion"], set()):
            text = json.dumps(each, sort_keys=True)
            if text not in _known:
                _known[text] = [fault for version in VERSIONS for fault in _refused(each, version)]
            faults += _known[text]
    return faults


def _refused(each: Object, version: str) -> list[str]:
    where = f"{each['kind']} {each['metadata']['name']}, Kubernetes {version}"
    api = re.sub(r"^([^./]*)(?:\.[^/]*)?/", r"\1-", each["apiVersion"])
    file = f"{each['kind'].lower()}-{api}.json"
    if file not in {path.name for path in _folder(version).iterdir()}:
        return [f"{where}: no such kind in {each['apiVersion']}, and no operator is named for it"]
    validator = Draft202012Validator(_read(version, file), registry=_definitions(version))
    return [f"{where}: {'.'.join(map(str, error.path))}: {error.message}" for error in validator.iter_errors(each)]


@functools.cache
def _folder(version: str) -> Any:
    return files("kubernetes_validate") / "kubernetes-json-schema" / f"v{version}.0-local-strict"


@functools.cache
def _read(version: str, file: str) -> Any:
    return json.loads((_folder(version) / file).read_text())


@functools.cache
def _definitions(version: str) -> Any:
    none: Any = Registry
    return Resource.from_contents(_read(version, "_definitions.json")) @ none()

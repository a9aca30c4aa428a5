"""The manifests as kustomize renders them: each check finds nothing wrong with any overlay."""

import os
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from . import edges, object_faults, pod_faults, schemas
from .rendered import MANIFESTS, OVERLAYS, Check, Objects, render, rendered, workloads

CHECKS: list[Check] = [
    pod_faults.settings,
    pod_faults.ports,
    pod_faults.probes,
    pod_faults.grace,
    pod_faults.volumes,
    pod_faults.rights,
    pod_faults.resources,
    schemas.schemas,
    object_faults.whole,
    object_faults.selectors,
    object_faults.identities,
    object_faults.references,
    object_faults.images,
    object_faults.operators,
    object_faults.room_of_the_log,
    edges.network,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: f"{check.__module__.rpartition('.')[2]}.{check.__name__}")
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_an_overlay_says_what_the_code_reads_and_the_cluster_takes(overlay: str, check: Check) -> None:
    assert [] == check(render(overlay))


def on_cpu(component: str, folder: Path) -> Objects:
    """The overlay `cpu` with a component more."""
    overlay, added = (os.path.relpath(MANIFESTS / each, folder) for each in ("overlays/cpu", f"components/{component}"))
    head = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamespace: weft\n"
    (folder / "kustomization.yaml").write_text(f"{head}resources: [{overlay}]\ncomponents: [{added}]\n")
    return rendered(folder)


@pytest.mark.parametrize("component", sorted(each.name for each in (MANIFESTS / "components").iterdir()))
def test_a_component_is_whole_on_an_overlay_that_lacks_it(component: str, tmp_path: Path) -> None:
    objects = on_cpu(component, tmp_path)
    assert render("cpu") != objects
    assert [] == [fault for check in CHECKS for fault in check(objects)]


def test_who_traces_is_let_out_to_where_traces_go(tmp_path: Path) -> None:
    objects = on_cpu("traces", tmp_path)
    told = {each.part: each.env["WEFT_OTLP_ENDPOINT"] for each in workloads(objects) if each.target is not None}
    (where,) = {urlsplit(str(each)) for each in told.values()}
    (policy,) = (each["spec"] for each in objects if each["metadata"]["name"] == "traces")
    (rule,) = policy["egress"]
    (peer,) = rule["to"]
    assert [{"port": where.port}] == rule["ports"]
    assert f".{peer['namespaceSelector']['matchLabels']['kubernetes.io/metadata.name']}.svc" in str(where.hostname)
    (chosen,) = policy["podSelector"]["matchExpressions"]
    assert set(told) == {each.part for each in workloads(objects) if each.labels[chosen["key"]] in chosen["values"]}

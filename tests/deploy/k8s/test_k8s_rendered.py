"""The manifests as kustomize renders them: each check finds nothing wrong with any overlay."""

import pytest

from . import edges, object_faults, pod_faults, schemas
from .rendered import OVERLAYS, Check, render

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
    edges.network,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: f"{check.__module__.rpartition('.')[2]}.{check.__name__}")
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_an_overlay_says_what_the_code_reads_and_the_cluster_takes(overlay: str, check: Check) -> None:
    assert [] == check(render(overlay))

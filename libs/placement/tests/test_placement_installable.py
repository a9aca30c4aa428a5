"""A node that could install an engine is a place for it, after those where it lies; each no is a sentence."""

from typing import Any

import pytest
from weft_contracts.backends import BackendRecipe, BackendVariant
from weft_contracts.engines import BUILTIN
from weft_contracts.facts.machine import Reported
from weft_contracts.facts.mesh import BackendSet, EngineProfileSet
from weft_contracts.facts.values import (
    Backend,
    Device,
    Hardware,
    InstalledBackend,
    Installs,
    ModelSpec,
    SimulatedSource,
)
from weft_contracts.ids import NodeId
from weft_contracts.subjects import MESH, machine
from weft_placement import NoPlace, Placement, Policy, decide_placement
from weft_placement.installable import to_install
from weft_testing.fleet_log import FleetLog

GIB = 1 << 30
ECHO = BUILTIN["simulated"].model_copy(update={"name": "echo", "made_up_devices": False})
SPEC = ModelSpec(source=SimulatedSource(), engine="echo")
NVIDIA = BackendVariant(
    vendor="nvidia", package="echo", version="1", requirements=("echo==1",), disk=GIB, driver_least="500"
)
CPU = NVIDIA.model_copy(update={"vendor": "cpu", "driver_least": ""})


def a_mesh(*variants: BackendVariant) -> FleetLog:
    log = FleetLog()
    log.add(MESH, EngineProfileSet(profile=ECHO))
    if variants:
        log.add(MESH, BackendSet(recipe=BackendRecipe(engine="echo", variants=variants)))
    return log


def a_node(
    log: FleetLog, name: str, *devices: Device, installs: Installs | None = None, has: tuple[Any, ...] = ()
) -> NodeId:
    id = log.node(name, GIB, vendor="cpu", engines=())
    cpu = Device(index=0, vendor="cpu", name="cpu", memory=8 * GIB)
    hardware = Hardware(cpus=2, memory=8 * GIB, devices=(cpu, *devices))
    backends = tuple(Backend(engine="echo", version="1", vendors=(v,), profile=ECHO.digest) for v in has)
    log.add(
        machine(id),
        Reported(hardware=hardware, backends=backends, builtins=(), agent_version="1", installs=installs),
    )
    return id


def gpu(driver: str | None = "550.1") -> Device:
    return Device(index=1, vendor="nvidia", name="H100", memory=80 * GIB, driver=driver)


def outcome(log: FleetLog) -> Placement | NoPlace:
    log.model("toy", SPEC, replicas=1)
    return decide_placement(log.fleet, next(reversed(log.fleet.replicas)), Policy(), now=1.0, seed=0)


@pytest.mark.parametrize(
    ("variants", "devices", "installs", "reason"),
    [
        ((CPU,), (), None, "has no echo backend"),
        ((), (), Installs(), "has no echo backend"),
        ((CPU,), (), Installs(allowed=False), "has no echo backend, and may install none"),
        ((CPU,), (), Installs(disk_free=GIB - 1), "has no echo backend, and has too little disk to install it"),
        ((NVIDIA,), (), Installs(), "has no echo backend, and the catalogue has none for its devices"),
        (
            (NVIDIA.model_copy(update={"build": "rocm"}),),
            (gpu(),),
            Installs(),
            "has no echo backend, and the catalogue has none for its devices and its rocm build is on no public index: "
            "UV_INDEX, WEFT_INSTALL_INDEX or WEFT_INSTALL_OFFLINE of its worker must name one",
        ),
        (
            (NVIDIA,),
            (gpu("470.1"),),
            Installs(),
            "has no echo backend, and the catalogue has none for its devices and "
            "its nvidia driver is none of those that the catalogue has one for",
        ),
    ],
)
def test_a_node_that_can_not_have_the_engine_says_why(
    variants: tuple[BackendVariant, ...], devices: tuple[Device, ...], installs: Installs | None, reason: str
):
    log = a_mesh(*variants)
    a_node(log, "a", *devices, installs=installs)
    answer = outcome(log)
    assert isinstance(answer, NoPlace)
    assert {reason: 1} == answer.receipt.refusals


@pytest.mark.parametrize(("variant", "device"), [(CPU, 0), (NVIDIA, 1)])
def test_a_node_that_could_install_it_is_a_place_on_the_devices_that_it_would_be_for(
    variant: BackendVariant, device: int
):
    log = a_mesh(variant)
    id = a_node(log, "a", gpu(), installs=Installs(disk_free=GIB))
    answer = outcome(log)
    assert isinstance(answer, Placement)
    assert [device] == [each.index for each in answer.members[0].devices]
    assert 0.0 == answer.receipt.candidates[0].scores["installed"]
    fleet = log.fleet
    assert variant == to_install(fleet.nodes[id], ECHO, fleet.recipes["echo"], {device})


def test_the_memory_that_is_claimed_beside_accelerators_asks_for_no_build_for_the_processor():
    log = a_mesh(CPU, NVIDIA)
    id = a_node(log, "a", gpu(), installs=Installs(disk_free=GIB), has=("nvidia",))
    node, recipe = log.fleet.nodes[id], log.fleet.recipes["echo"]

    assert CPU == to_install(node, ECHO, recipe, {0})
    assert to_install(node, ECHO, recipe, {0, 1}) is None


def test_where_it_lies_comes_first_and_nothing_is_to_be_installed_there():
    log = a_mesh(CPU)
    a_node(log, "a", installs=Installs())
    lies = a_node(log, "b", installs=Installs(), has=("cpu",))
    answer = outcome(log)
    assert isinstance(answer, Placement)
    assert [lies] == [member.node for member in answer.members]
    assert "installed" not in answer.receipt.candidates[0].scores
    assert to_install(log.fleet.nodes[lies], ECHO, log.fleet.recipes["echo"], {0}) is None


def test_an_engine_that_nothing_could_run_is_not_installed():
    log = FleetLog()
    a_node(log, "a", installs=Installs())
    log.model("toy", SPEC.model_copy(update={"engine": "simulated"}), replicas=1)
    answer = decide_placement(log.fleet, next(reversed(log.fleet.replicas)), Policy(), now=1.0, seed=0)
    assert isinstance(answer, NoPlace)
    assert {"has no simulated backend": 1} == answer.receipt.refusals


def made(variant: BackendVariant) -> InstalledBackend:
    return InstalledBackend(
        name="echo-1", engine="echo", vendor=variant.vendor, version=variant.version, recipe=variant.digest
    )


def with_environment(log: FleetLog, id: NodeId, variant: BackendVariant, installs: Installs) -> None:
    hardware = Hardware(cpus=2, memory=8 * GIB, devices=(Device(index=0, vendor="cpu", name="cpu", memory=8 * GIB),))
    backend = Backend(engine="echo", version="1", vendors=("cpu",), profile=ECHO.digest)
    said = Reported(hardware=hardware, backends=(backend,), builtins=(), agent_version="1", installs=installs)
    log.add(machine(id), said.model_copy(update={"environments": (made(variant),)}))


def test_what_the_node_made_itself_is_named_and_a_newer_recipe_is_made_beside_it_where_it_can_be():
    newer = CPU.model_copy(update={"version": "2"})
    log = a_mesh(CPU)
    id = a_node(log, "a", installs=Installs())
    fleet = log.fleet
    # given what the recipe names, on a disk that is full by now
    with_environment(log, id, CPU, Installs(disk_free=0))
    assert CPU == to_install(fleet.nodes[id], ECHO, fleet.recipes["echo"], {0})
    # when there is a newer recipe
    log.add(MESH, BackendSet(recipe=BackendRecipe(engine="echo", variants=(newer,))))
    # then it is for the disk to say whether what runs anew runs in that
    assert to_install(fleet.nodes[id], ECHO, fleet.recipes["echo"], {0}) is None
    with_environment(log, id, CPU, Installs(disk_free=GIB))
    assert newer == to_install(fleet.nodes[id], ECHO, fleet.recipes["echo"], {0})
    assert isinstance(outcome(log), Placement)


def test_a_build_that_the_public_index_has_not_can_be_had_where_the_operator_named_another():
    variant = NVIDIA.model_copy(update={"build": "rocm"})
    log = a_mesh(variant)
    id = a_node(log, "a", gpu(), installs=Installs(own_index=True))
    assert isinstance(outcome(log), Placement)
    assert variant == to_install(log.fleet.nodes[id], ECHO, log.fleet.recipes["echo"], {1})

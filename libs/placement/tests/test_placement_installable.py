"""A node that could install an engine is a place for it, after those where it lies; each no is a sentence."""

from typing import Any

import pytest
from weft_contracts.backends import TOOLS, BackendRecipe, BackendVariant, SourceBuild, builtin_recipes
from weft_contracts.engines import BUILTIN
from weft_contracts.facts.machine import Reported
from weft_contracts.facts.mesh import BackendSet, EngineProfileSet
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import Backend, Device, Hardware, InstalledBackend, Installs, ModelSpec
from weft_contracts.ids import NodeId
from weft_contracts.subjects import MESH, machine
from weft_placement import NoPlace, Placement, Policy, decide_placement
from weft_placement.installable import installable, to_install
from weft_testing.fleet_log import FleetLog

GIB = 1 << 30
ECHO = BUILTIN["simulated"].model_copy(update={"name": "echo", "made_up_devices": False})
SPEC = ModelSpec(source=SimulatedSource(), engine="echo")
NVIDIA = BackendVariant(
    vendor="nvidia", package="echo", version="1", requirements=("echo==1",), disk=GIB, driver_least="500"
)
CPU = NVIDIA.model_copy(update={"vendor": "cpu", "driver_least": ""})
NEWER = CPU.model_copy(update={"version": "2", "requirements": ("echo==2",)})
SOURCE = SourceBuild(requirements=("setuptools==80.9.0",), hashes={}, tools=("c++", "nvcc"))
BUILT = NVIDIA.model_copy(update={"source": SOURCE})


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
        (
            (CPU,),
            (),
            Installs(disk_free=GIB, room={CPU.digest: GIB + 1}),
            "has no echo backend, and has too little disk to install it",
        ),
        ((NVIDIA,), (), Installs(), "has no echo backend, and the catalogue has none for its devices"),
        (
            (NVIDIA.model_copy(update={"build": "rocm"}),),
            (gpu(),),
            Installs(),
            "has no echo backend, and the catalogue has none for its devices and its rocm build is on no public index: "
            "UV_INDEX, WEFT_INSTALL_INDEX or WEFT_INSTALL_OFFLINE of its worker must name one",
        ),
        (
            (BUILT,),
            (gpu(),),
            Installs(),
            "has no echo backend, and the catalogue has none for its devices and its worker is of a version that "
            "builds none, as the one for nvidia is",
        ),
        (
            (BUILT,),
            (gpu(),),
            Installs(builds=("c++", "cmake")),
            "has no echo backend, and the catalogue has none for its devices and the one for nvidia is built there, "
            "which needs nvcc of NVIDIA's CUDA toolkit, in PATH, in CUDA_PATH or in /usr/local/cuda",
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


def test_what_another_recipe_had_no_room_for_refuses_nothing_and_what_is_not_known_is_room():
    assert not Installs(disk_free=GIB, room={"another": 2 * GIB}).lacks_room(CPU.digest, GIB)
    assert not Installs(disk_free=GIB, room={CPU.digest: GIB}).lacks_room(CPU.digest)
    assert Installs(disk_free=GIB, room={CPU.digest: GIB}).lacks_room(CPU.digest, GIB + 1)
    assert not Installs(room={CPU.digest: GIB}).lacks_room(CPU.digest, GIB)


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


def test_what_a_node_made_itself_lies_there_until_the_recipe_is_another():
    # given two nodes that may install the engine, and one of them did
    log = a_mesh(CPU)
    a_node(log, "a", installs=Installs())
    lies = a_node(log, "b", installs=Installs())
    with_environment(log, lies, CPU, Installs())
    # then that one comes first, and its own environment is what it is to run in
    answer = outcome(log)
    assert isinstance(answer, Placement)
    assert [lies] == [member.node for member in answer.members]
    assert "installed" not in answer.receipt.candidates[0].scores
    assert CPU == to_install(log.fleet.nodes[lies], ECHO, log.fleet.recipes["echo"], {0})
    # when the recipe is another
    log.add(MESH, BackendSet(recipe=BackendRecipe(engine="echo", variants=(NEWER,))))
    # then it would have to be installed there, too
    answer = outcome(log)
    assert isinstance(answer, Placement)
    assert [0.0, 0.0] == [each.scores["installed"] for each in answer.receipt.candidates]


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


def test_what_is_built_is_a_place_where_there_is_all_to_build_it_with_and_the_processor_elsewhere():
    log = a_mesh(CPU, BUILT)
    lacks = a_node(log, "a", gpu(), installs=Installs(builds=("c++",)))
    able = a_node(log, "b", gpu(), installs=Installs(builds=("c++", "nvcc", "make")))
    fleet = log.fleet
    recipe = fleet.recipes["echo"]
    assert {"cpu": CPU} == installable(fleet.nodes[lacks], ECHO, recipe)
    assert {"cpu": CPU, "nvidia": BUILT} == installable(fleet.nodes[able], ECHO, recipe)
    assert BUILT == to_install(fleet.nodes[able], ECHO, recipe, {1})


@pytest.mark.parametrize(
    ("device", "option"),
    [
        ("nvidia", "GGML_CUDA"),
        ("amd", "GGML_VULKAN"),
        ("intel", "GGML_VULKAN"),
        ("apple", None),
    ],
)
def test_of_llama_cpps_own_recipe_a_node_gets_what_is_for_its_devices(device: Any, option: str | None):
    log = FleetLog()
    has = Device(index=1, vendor=device, name="a device", memory=8 * GIB)
    node = a_node(log, "a", has, installs=Installs(builds=tuple(TOOLS)))
    engine, recipe = BUILTIN["llama.cpp"], builtin_recipes()["llama.cpp"]
    variant = to_install(log.fleet.nodes[node], engine, recipe, {1})
    assert variant is not None
    assert device == variant.vendor
    assert option in (variant.source.cmake if variant.source is not None else {None: True})

"""What a revision's engine is installed by where the mesh's recipe failed for it."""

from weft_contracts.backends import BackendRecipe, BackendVariant
from weft_contracts.facts.mesh import BackendSet
from weft_contracts.facts.model import Unservable
from weft_contracts.facts.node import Assigned
from weft_contracts.facts.run import Ready
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import DeviceClaim, Member, ModelSpec, Vendor
from weft_contracts.ids import Incarnation, ModelId, replica_id
from weft_contracts.subjects import MESH, model, node, run
from weft_placement.kept_recipe import recipe_for, recipes_for
from weft_testing.fleet_log import FleetLog

ID = ModelId("m-toy")
SPEC = ModelSpec(source=SimulatedSource(), engine="simulated")


def variant(version: str, vendor: Vendor = "cpu") -> BackendVariant:
    return BackendVariant(
        vendor=vendor, package="simulated", version=version, requirements=(f"simulated=={version}",), disk=1
    )


class Mesh:
    """A model of three replicas on one node."""

    def __init__(self) -> None:
        self.log = FleetLog()
        self.node = self.log.node("a", 1 << 40)
        self.log.model("toy", SPEC, replicas=3)

    def recipe(self, *variants: BackendVariant) -> None:
        self.log.add(MESH, BackendSet(recipe=BackendRecipe(engine="simulated", variants=variants)))

    def serves_in(self, number: int, backend: BackendVariant) -> None:
        id = replica_id(ID, number)
        members = (Member(node=self.node, rank=0, devices=(DeviceClaim(index=0, bytes=1),)),)
        of = {"replica": id, "model": ID, "model_name": "toy", "revision": 1, "digest": "d", "epoch": 1}
        self.log.add(
            node(self.node), Assigned.model_validate({**of, "members": members, "spec": SPEC, "backend": backend})
        )
        ready = Ready(epoch=1, incarnation=Incarnation("i"), port=1, engine="simulated", engine_version="1")
        self.log.add(run(self.node, id), ready)

    def refuse(self, *variants: BackendVariant) -> None:
        for each in variants:
            self.log.add(model(ID), Unservable(revision=1, reason="it crashed", recipe=each.digest))

    def had(self) -> list[tuple[str, str]]:
        found = recipe_for(self.log.fleet, ID, 1)
        assert found is not None
        return [(each.vendor, each.version) for each in found.variants]


def test_the_meshs_recipe_holds_until_it_is_refused() -> None:
    mesh = Mesh()
    assert recipe_for(mesh.log.fleet, ID, 1) is None
    assert {} == recipes_for(mesh.log.fleet, ID, 1)

    mesh.recipe(variant("1"))
    mesh.serves_in(1, variant("1"))
    mesh.recipe(variant("2"))

    assert [("cpu", "2")] == mesh.had()


def test_for_a_refused_one_stands_what_served_last_for_that_vendor() -> None:
    mesh = Mesh()
    for number, each in enumerate((variant("1"), variant("2"), variant("2", "nvidia")), 1):
        mesh.serves_in(number, each)
    mesh.recipe(variant("3"), variant("3", "nvidia"))

    mesh.refuse(variant("3"))

    assert [("cpu", "2"), ("nvidia", "3")] == mesh.had()
    assert {"simulated"} == set(recipes_for(mesh.log.fleet, ID, 1))


def test_what_was_refused_itself_stands_for_nothing() -> None:
    mesh = Mesh()
    mesh.serves_in(1, variant("1"))
    mesh.serves_in(2, variant("2"))
    mesh.recipe(variant("3"))

    mesh.refuse(variant("3"), variant("2"))
    assert [("cpu", "1")] == mesh.had()
    mesh.refuse(variant("1"))

    assert [] == mesh.had()


def test_a_vendor_of_several_drivers_has_what_served_once() -> None:
    mesh = Mesh()
    mesh.serves_in(1, variant("1", "nvidia"))
    ranges = [variant("2", "nvidia").model_copy(update={"driver_least": least}) for least in ("500", "600")]
    mesh.recipe(*ranges)

    mesh.refuse(*ranges)

    assert [("nvidia", "1")] == mesh.had()

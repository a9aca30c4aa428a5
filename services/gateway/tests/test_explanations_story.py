"""What a real gateway process says of decisions, nodes and aliases, from memory and from a real log."""

from typing import Any

import httpx
from weft_contracts.aliases import AliasTarget
from weft_contracts.facts.model import Scaled, Unservable
from weft_contracts.facts.name import Aliased
from weft_contracts.facts.replica import Unplaceable
from weft_contracts.facts.run import Failed
from weft_contracts.ids import ModelId, replica_id
from weft_contracts.subjects import model, name, replica, run

from .conftest import MODEL, NODE, RECEIPT

World = Any
REASON = "no node can take it; the nearest, node-aaaa, has no device that it can use"


async def explained(world: World, ref: str, status: int = 200) -> dict[str, Any]:
    async with httpx.AsyncClient(base_url=world.url, timeout=30) as client:
        said = await client.get(f"/api/explanations/{ref}")
    assert status == said.status_code, said.text
    return said.json()


async def test_a_replica_a_model_a_node_and_an_alias_are_explained_and_nothing_else(world: World) -> None:
    # given a replica that ended, one without a place, and an alias of their model
    await world.a_node()
    await world.a_model()
    placed = await world.a_placed_replica()
    await world.stopped(placed)
    waits = replica_id(MODEL, 2)
    await world.tell(model(MODEL), Scaled(revision=1, add=(waits,), why="wanted"))
    position = await world.log.head()
    receipt = RECEIPT.model_copy(update={"position": position, "refusals": {"has no device that it can use": 1}})
    await world.tell(replica(waits), Unplaceable(model=MODEL, revision=1, reason=REASON, receipt=receipt))
    aliased = Aliased(name="chat", rule="weights", targets=(AliasTarget(model=MODEL),))
    await world.tell(name("model", "chat"), aliased)
    set_at = await world.log.head()
    await world.a_gateway()
    await world.folded()

    # then a replica tells its decision, recomputed at its place in the log
    found = (await explained(world, waits))["replica"]
    assert (REASON, position, True) == (found["outcome"], found["position"], found["recomputed"])
    assert ["node-aaaa"] == [each["name"] for each in found["nodes"]]
    assert found["nodes"][0]["refusal"]
    assert {"has no device that it can use": 1} == found["receipt"]["refusals"]

    # and a model the one of its replicas that comes first, with what went wrong with others
    first = (await explained(world, "sim"))["replica"]
    assert (placed, {"reason": "", "last_lines": []}) == (first["replica"], first["last_end"]) or (
        waits == first["replica"]
    )
    assert any(REASON in line for line in [first["outcome"], *first["troubles"]])

    # and a node, by name and by id, whether it could take one more
    for ref in (NODE, "node-aaaa"):
        node = (await explained(world, ref))["node"]
        assert ("node-aaaa", "healthy", 1) == (node["name"], node["state"], node["replicas"])
        (fit,) = node["models"]
        assert ("sim", 1, 1) == (fit["model"], fit["holds"], fit["waiting"])
        assert fit["refusal"]

    # and an alias since when it stands
    alias = (await explained(world, "chat"))["alias"]
    assert ("chat", set_at, ["sim"]) == (alias["name"], alias["position"], [t["model"] for t in alias["targets"]])

    # and what there isn't is 404 with its name
    assert "'none'" in (await explained(world, "none", 404))["detail"]


async def test_a_model_without_a_replica_tells_why_how_its_last_one_ended_and_where_one_more_would_go(
    world: World,
) -> None:
    # given a model whose only replica failed, which was given up and retired for good
    await world.a_node()
    await world.a_model()
    gone = await world.a_placed_replica()
    failed = Failed(epoch=1, reason="it can't frobnicate", permanent=True, starts=1, last_lines=("frob", "nope"))
    await world.tell(run(NODE, gone), failed)
    await world.tell(model(MODEL), Unservable(revision=1, reason="it can't frobnicate"))
    await world.tell(model(MODEL), Scaled(revision=1, retire=(gone,), why="it can't be served"))
    await world.retired(gone)
    # and one that never had any
    never = ModelId("m-bbbbbbbbbbbbbbbb")
    await world.a_model("never", id=never, spec=world.spec.model_copy(update={"min_replicas": 0, "max_replicas": 3}))
    await world.a_gateway()
    await world.folded()

    # then it says how it stands, how its last process ended, and asks each node about one more
    answer = await explained(world, "sim")
    found = answer["replica"]
    assert ("model", replica_id(MODEL, 2), None) == (answer["kind"], found["replica"], found["receipt"])
    assert ("unservable", "it can't frobnicate") == (found["stands"]["state"], found["stands"]["reason"])
    assert {"reason": "it can't frobnicate", "last_lines": ["frob", "nope"]} == found["last_end"]
    assert ["revision 1 of sim can't be served: it can't frobnicate"] == found["troubles"]
    assert ["has not reported its hardware"] == [each["refusal"] for each in found["nodes"]]

    # and the other that none is wanted until a request comes
    found = (await explained(world, "never"))["replica"]
    assert (replica_id(never, 1), None, []) == (found["replica"], found["last_end"], found["troubles"])
    assert ("empty", "none is wanted until a request comes") == (found["stands"]["state"], found["stands"]["reason"])
    assert (0, 3, False, None) == tuple(found["stands"][name] for name in ("least", "most", "all_nodes", "size"))

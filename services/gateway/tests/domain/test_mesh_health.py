"""What is wrong in the mesh, in sentences."""

import pytest
from weft_contracts.facts.node import Joined
from weft_contracts.facts.values import Addresses
from weft_contracts.ids import NodeId, TokenId
from weft_contracts.subjects import node
from weft_fleet import Fleet
from weft_gateway.domain.mesh_health import NAMED, problems_of
from weft_testing import HandLog


@pytest.mark.parametrize(("count", "sentences"), [(NAMED, NAMED), (NAMED + 1, 1)])
def test_many_who_wait_for_approval_are_one_sentence(count: int, sentences: int) -> None:
    log, fleet = HandLog(), Fleet()
    log.listen(fleet.apply)
    where = Addresses(host="127.0.0.1", http_port=1)
    for number in range(count):
        joined = Joined(name=f"box-{number}", public_key="U", token=TokenId("t-a"), addresses=where)
        log.given(node(NodeId(f"n-{number}")), joined)
    said = problems_of(fleet, {})
    assert sentences == len(said)
    assert "box-0" in said[0]
    assert sentences > 1 or said[0].startswith(f"{count} nodes wait for approval")

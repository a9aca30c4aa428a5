"""Files spread over nodes: one copy leaves the source, each link carries one, and nobody waits for who waits for it."""

from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.ids import NodeId
from weft_gateway.domain.spreading import FALLBACKS, MOST_PATIENCE_S, PATIENCE_S, near

Fleet = tuple[list[NodeId], list[NodeId]]


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    """Who has files, and who waits for them."""
    names = [NodeId(f"n-{number}") for number in range(draw(st.integers(1, 24)))]
    names = draw(st.permutations(names))
    have = draw(st.integers(0, len(names)))
    return names[:have], names[have:]


@given(fleets())
def test_nobody_waits_in_a_circle_and_everybody_gets_a_copy(fleet: Fleet) -> None:
    holders, waiting = fleet
    have = set(holders)
    # each asks only who has it or who has it once those before have: so it comes to all, in their order
    for node in waiting:
        found = near(holders, waiting, node)
        assert have.issuperset(found.peers)
        assert found.peers or found.source_after_s == 0
        have.add(node)
    assert have == {*holders, *waiting}


@given(fleets())
def test_at_first_one_asks_the_source_and_only_where_nobody_has_a_copy(fleet: Fleet) -> None:
    holders, waiting = fleet
    at_once = [node for node in waiting if near(holders, waiting, node).source_after_s == 0]
    assert at_once == (waiting[:1] if not holders else [])
    later = [near(holders, waiting, node).source_after_s for node in waiting if node not in at_once]
    assert later == sorted(later)
    assert all(PATIENCE_S <= each <= MOST_PATIENCE_S for each in later)


@given(fleets())
def test_each_link_carries_one_copy(fleet: Fleet) -> None:
    holders, waiting = fleet
    first = [found.peers[0] for node in waiting if (found := near(holders, waiting, node)).peers]
    assert len(first) == len(set(first))


@given(fleets())
def test_a_node_is_told_a_few_others_beside_the_first_and_each_once(fleet: Fleet) -> None:
    holders, waiting = fleet
    for node in [*waiting, *holders]:
        peers = near(holders, waiting, node).peers
        assert len(peers) == len(set(peers)) <= 1 + FALLBACKS
        assert node not in peers


def test_a_row_forms_behind_the_first_and_shorter_ones_where_several_have_it() -> None:
    a, b, c, d = (NodeId(name) for name in "abcd")
    assert ((), (a,), (b, a)) == tuple(near([], [a, b, c], node).peers for node in (a, b, c))
    assert (a, b, c) == tuple(near([a, b], [c, d, NodeId("e")], node).peers[0] for node in (c, d, NodeId("e")))

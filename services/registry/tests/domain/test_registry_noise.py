"""A node that floods is named while it does, and nobody else."""

import pytest
from weft_contracts.ids import NodeId
from weft_registry.domain.noise import FACTS_S, LEASES_S, WINDOW_S, Noise

A, B = NodeId("n-a"), NodeId("n-b")


@pytest.mark.parametrize(
    ("leases", "facts", "expected"),
    [
        (5, 200, {}),
        (int(LEASES_S * WINDOW_S), int(FACTS_S * WINDOW_S), {}),
        (100_000, 0, {A: "10,000 leases a second"}),
        (5, 50_000, {A: "5,000 facts a second"}),
    ],
)
def test_who_sends_far_more_than_a_node_has_to_say_is_named(
    leases: int, facts: int, expected: dict[NodeId, str]
) -> None:
    noise = Noise()
    noise.turn(0.0)
    for _ in range(leases):
        noise.lease(A)
    noise.facts(A, facts)
    noise.lease(B)
    assert (False, {}) == (noise.turn(WINDOW_S - 1), noise.loud)
    assert (bool(expected), expected) == (noise.turn(WINDOW_S), noise.loud)
    # and no longer than that
    assert (bool(expected), {}) == (noise.turn(2 * WINDOW_S), noise.loud)

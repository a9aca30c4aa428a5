"""The token that a mesh is founded with: how many nodes it approves."""

import pytest
from weft_contracts.facts.node import Approved
from weft_contracts.facts.request import Fulfilled, JoinRequested
from weft_contracts.ids import NodeId, token_hash, token_id
from weft_registry.domain.founding import BootstrapToken

from .registry_story import HERE, Story, nkey, node

TOKEN = token_id("founding")


@pytest.fixture
def story() -> Story:
    found = Story()
    found.bootstrap = BootstrapToken(TOKEN, token_hash("founding"), nodes=2)
    found.settle()
    return found


def approved(story: Story) -> list[NodeId]:
    return [each.id for each in story.state.fleet.nodes.values() if each.approved and not each.removed]


def test_it_approves_so_many_nodes_and_who_comes_beyond_them_waits_for_an_admin(story: Story) -> None:
    for number in (1, 2, 3):
        assert isinstance(story.join(number, TOKEN), Fulfilled)
    assert [node(1), node(2)] == approved(story)
    assert isinstance(story.approve(node(3)), Fulfilled)
    # an admin's approval takes no place of the token's, and who comes again takes none twice
    story.log.now += 1
    story.join(1, TOKEN)
    assert [node(1), node(2), node(3)] == approved(story)


def test_a_node_that_was_removed_leaves_its_place_to_another(story: Story) -> None:
    for number in (1, 2):
        story.join(number, TOKEN)
    assert isinstance(story.remove(node(1)), Fulfilled)
    for number in (3, 4):
        story.join(number, TOKEN)
    assert [node(2), node(3)] == approved(story)


def test_those_that_come_in_one_round_are_counted_too(story: Story) -> None:
    for number in range(1, 6):
        story.ask(JoinRequested(token=TOKEN, name=f"n-{number}", public_key=nkey(number), addresses=HERE))
    story.settle()
    assert 2 == len([fact for fact in story.log.facts() if isinstance(fact, Approved)])
    assert 5 == len(story.state.fleet.nodes)


def test_another_number_counts_from_the_next_start_on(story: Story) -> None:
    for number in (1, 2, 3):
        story.join(number, TOKEN)
    story.bootstrap = BootstrapToken(TOKEN, token_hash("founding"), nodes=3)
    story.join(3, TOKEN, labels={"again": "1"})
    assert [node(1), node(2), node(3)] == approved(story)

"""Who asked to join within the minute and who waits for approval, and when one more is too many."""

import base64
import binascii

import pytest
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.node import Approved, Expired, Healthy, Joined, Rejected, Removed
from weft_contracts.facts.request import ApprovalRequested, JoinRequested
from weft_contracts.facts.values import Addresses
from weft_contracts.ids import NodeId, RequestId, TokenId, node_id_of
from weft_contracts.subjects import node, request
from weft_fleet import JoinLimits, Registrations, TooMany
from weft_fleet.registrations import FULL_S, Minute, Waiting, beyond
from weft_testing import HandLog

HERE = Addresses(host="127.0.0.1", http_port=1)
ONE, OTHER = TokenId("t-1"), TokenId("t-2")
LIMITS = JoinLimits(in_all=4, per_token=2)
A, B, C = (NodeId(f"n-{name}") for name in "abc")


def nkey(number: int) -> str:
    """The public key of the node with this number, in its text form."""
    raw = bytes([20 << 3]) + number.to_bytes(32, "big")
    return base64.b32encode(raw + binascii.crc_hqx(raw, 0).to_bytes(2, "little")).decode()


class Story:
    def __init__(self, start_at: float = 600.0) -> None:
        self.log = HandLog(start_at=start_at)
        self.folded = Registrations()
        self.log.listen(self.folded.apply)

    def asks(self, number: int, token: TokenId = ONE, key: str | None = None) -> None:
        """A machine asks to join."""
        fact = JoinRequested(token=token, name=f"n{number}", public_key=key or nkey(number), addresses=HERE)
        self.log.given(request(RequestId(f"r-{self.log.head}")), fact)

    def joins(self, id: NodeId, token: TokenId = ONE) -> None:
        """It is let in, and waits for approval."""
        self.log.given(node(id), Joined(name=str(id), public_key="U", token=token, addresses=HERE))

    def full(self, token: TokenId = ONE, said: int | None = None) -> TooMany | None:
        return self.folded.pace.full(token, LIMITS, said, self.log.now)


@pytest.fixture
def story() -> Story:
    return Story()


# within the minute


def test_registrations_of_one_minute_are_counted_by_token_and_in_all(story: Story) -> None:
    assert (0, 0) == story.folded.pace.turn(ONE)
    for number, token in enumerate((ONE, OTHER, ONE)):
        story.asks(number, token)
    assert (2, 3) == story.folded.pace.turn(ONE)
    assert (1, 3) == story.folded.pace.turn(OTHER)


def test_the_next_minute_counts_from_one(story: Story) -> None:
    story.log.now = 659.9
    story.asks(1)
    story.asks(2)
    story.log.now = 660.0
    story.asks(3)
    assert (1, 1) == story.folded.pace.turn(ONE)
    story.log.now = 719.9
    story.asks(4)
    assert (2, 2) == story.folded.pace.turn(ONE)


@pytest.mark.parametrize(("now", "seen"), [(660.0, 3), (719.9, 3), (720.0, 0), (659.9, 0)])
def test_what_a_minute_saw_counts_in_that_minute_alone(now: float, seen: int) -> None:
    assert seen == Minute(11, 3).seen(now)


def test_a_token_is_full_with_its_number_until_the_minute_is_over(story: Story) -> None:
    story.log.now = 615.0
    story.asks(1)
    assert story.full() is None
    story.asks(2)
    what = "2 registrations within a minute is all that this token allows"
    assert TooMany(what, 45.0) == story.full()
    assert story.full(OTHER) is None
    story.log.now = 660.0
    assert story.full() is None


def test_a_tokens_own_number_stands_over_the_setting_also_where_it_is_nothing(story: Story) -> None:
    story.asks(1)
    story.asks(2)
    assert story.full(said=3) is None
    assert story.full(OTHER, said=0) == TooMany("0 registrations within a minute is all that this token allows", 60.0)


def test_the_mesh_is_full_with_its_number_whatever_each_token_allows(story: Story) -> None:
    for number in range(3):
        story.asks(number, TokenId(f"t-{number}"))
    assert story.full() is None
    story.asks(3, TokenId("t-3"))
    assert TooMany("4 registrations within a minute is all that this mesh takes", 60.0) == story.full()


@pytest.mark.parametrize(
    ("by_token", "in_all", "said", "why"),
    [
        (2, 4, None, None),
        (3, 4, None, "this token allows"),
        (2, 5, None, "this mesh takes"),
        (3, 5, None, "this token allows"),
        (3, 4, 3, None),
    ],
)
def test_the_last_one_that_is_allowed_is_taken_and_the_next_is_not(
    by_token: int, in_all: int, said: int | None, why: str | None
) -> None:
    found = beyond(by_token, in_all, LIMITS, said)
    assert found is None if why is None else found is not None and found.endswith(why)


def test_who_is_approved_is_not_counted_until_it_is_removed(story: Story) -> None:
    key = nkey(1)
    id = node_id_of(key)
    story.joins(id)
    story.log.given(node(id), Approved(by="admin"))
    story.asks(1, key=key)
    assert (0, 0) == story.folded.pace.turn(ONE)
    story.log.given(node(id), Removed(why="sold"))
    story.asks(1, key=key)
    assert (1, 1) == story.folded.pace.turn(ONE)


def test_a_key_that_is_none_counts_like_a_strangers(story: Story) -> None:
    story.asks(1, key="U")
    assert (1, 1) == story.folded.pace.turn(ONE)


def test_other_requests_are_no_registrations(story: Story) -> None:
    story.log.given(request(RequestId("r-1")), ApprovalRequested(node=A))
    assert (0, 0) == story.folded.pace.turn(ONE)


# who waits


@pytest.mark.parametrize(
    "ends", [Approved(by="admin"), Rejected(why="not ours"), Removed(why="sold"), Expired(waited_s=1)]
)
def test_a_node_waits_from_its_joining_until_somebody_or_time_decides(story: Story, ends: Fact) -> None:
    story.joins(A)
    story.log.given(node(A), Healthy())
    assert {A: Waiting(ONE, 600.0)} == story.folded.waiting
    story.log.given(node(A), ends)
    assert {} == story.folded.waiting
    assert isinstance(ends, Approved) == (A in story.folded.approved)
    # once more changes nothing
    story.log.given(node(A), ends)
    assert {} == story.folded.waiting


def test_an_approved_node_that_expires_or_is_removed_is_a_stranger_again(story: Story) -> None:
    for ends in (Removed(why="sold"), Expired(waited_s=1)):
        story.log.given(node(A), Approved(by="admin"))
        story.log.given(node(A), ends)
        assert {} == story.folded.approved


def test_one_token_lets_so_many_wait_and_others_of_their_own(story: Story) -> None:
    story.joins(A)
    assert story.folded.crowded(ONE, LIMITS, None) is None
    story.joins(B)
    what = "2 nodes that joined with this token wait for approval already, and no more may at once"
    assert TooMany(f"{what}: an admin approves or rejects them first", FULL_S) == story.folded.crowded(
        ONE, LIMITS, None
    )
    assert story.folded.crowded(OTHER, LIMITS, None) is None
    assert story.folded.crowded(ONE, LIMITS, 3) is None
    assert story.folded.crowded(OTHER, LIMITS, 0) is not None


def test_so_many_wait_in_all_whatever_each_token_allows(story: Story) -> None:
    limits = JoinLimits(in_all=3, per_token=9)
    story.joins(A)
    story.joins(B, OTHER)
    assert story.folded.crowded(ONE, limits, None) is None
    story.joins(C)
    found = story.folded.crowded(ONE, limits, None)
    assert found is not None
    assert found.why.startswith("3 nodes wait for approval already, and no more may at once: an admin")


def test_nodes_that_are_about_to_wait_count_as_if_they_did(story: Story) -> None:
    limits = JoinLimits(in_all=3, per_token=2)
    story.joins(A)
    assert story.folded.crowded(ONE, limits, None, more=1) is not None
    assert story.folded.crowded(ONE, limits, None, more_in_all=1) is None
    assert story.folded.crowded(ONE, limits, None, more_in_all=2) is not None

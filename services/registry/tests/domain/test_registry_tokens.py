"""Registration tokens: several live ones, each made, known by its hash, running out, revoked."""

import pytest
from weft_contracts import subjects
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.request import Fulfilled, Rejected, TokenRequested, TokenRevocationRequested
from weft_contracts.facts.token import Created, Revoked
from weft_contracts.ids import TokenId, token_hash, token_id
from weft_registry.domain.founding import BootstrapToken

from .registry_story import Story


@pytest.fixture
def story() -> Story:
    return Story()


def tell(story: Story, fact: Fact) -> Fact:
    return story.answered(story.ask(fact))


def made(story: Story, secret: str, *, approves: bool = False, lasts_s: float | None = None) -> TokenId:
    asked = TokenRequested(
        token=token_id(secret), hash=token_hash(secret), name=f"of {secret}", approves=approves, lasts_s=lasts_s
    )
    assert Fulfilled(result={"token": token_id(secret)}) == tell(story, asked)
    return token_id(secret)


def test_a_token_is_made_with_its_hash_name_expiry_and_approval(story: Story) -> None:
    id = made(story, "s", approves=True, lasts_s=60)
    expected = Created(hash=token_hash("s"), approves=True, expires_at=story.log.now + 60, name="of s")
    assert [expected] == story.log.facts(subjects.token(id))


def test_several_tokens_are_live_and_each_says_itself_whether_it_approves(story: Story) -> None:
    plain, good = made(story, "plain"), made(story, "good", approves=True)
    story.join(1, plain)
    story.join(2, good)
    assert [False, True] == [story.view(number).approved for number in (1, 2)]


def test_a_token_runs_out_from_the_moment_of_its_request_on(story: Story) -> None:
    id = made(story, "s", lasts_s=60)
    story.log.now += 59
    assert isinstance(story.join(1, id), Fulfilled)
    story.log.now += 1
    assert isinstance(story.join(2, id), Rejected)


def test_a_revoked_token_lets_nobody_in_and_the_others_do(story: Story) -> None:
    one, other = made(story, "one"), made(story, "other")
    story.join(1, one)
    # when, and twice is once
    for _ in range(2):
        assert Fulfilled(result={"token": one}) == tell(story, TokenRevocationRequested(token=one))
    assert [Created, Revoked] == [type(fact) for fact in story.log.facts(subjects.token(one))]
    # then
    assert isinstance(story.join(2, one), Rejected)
    assert isinstance(story.join(3, other), Fulfilled)
    # and who joined by it stays
    assert "node-1" == story.view(1).name


def test_the_launchers_token_stays_revoked(story: Story) -> None:
    bootstrap = BootstrapToken(token_id("x"), token_hash("x"))
    story.log.take(story.decided(token=bootstrap))
    assert isinstance(tell(story, TokenRevocationRequested(token=bootstrap.id)), Fulfilled)
    assert [] == story.decided(token=bootstrap)


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"hash": "short"}, 400),
        ({"token": "T.>"}, 400),
        ({"name": "n" * 64}, 400),
        ({"name": "a\nb"}, 400),
        ({"most_waiting": 100_001}, 400),
    ],
)
def test_a_token_that_cant_be_is_refused_in_one_sentence(story: Story, changed: dict[str, str], status: int) -> None:
    asked = TokenRequested(token=token_id("s"), hash=token_hash("s")).model_copy(update=changed)
    outcome = tell(story, asked)
    assert isinstance(outcome, Rejected)
    assert (status, False) == (outcome.status, "\n" in outcome.reason)


def test_the_same_secret_makes_no_second_token_and_an_unknown_one_cant_be_revoked(story: Story) -> None:
    made(story, "s")
    again = tell(story, TokenRequested(token=token_id("s"), hash=token_hash("s")))
    unknown = tell(story, TokenRevocationRequested(token=TokenId("t-none")))
    assert [409, 404] == [outcome.status for outcome in (again, unknown) if isinstance(outcome, Rejected)]

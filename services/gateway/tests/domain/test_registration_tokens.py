"""Which registration tokens let a machine ask to join, and how they are listed."""

import pytest
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.token import Bound, Created, Revoked
from weft_contracts.ids import TokenId, token_hash, token_id
from weft_contracts.subjects import token
from weft_gateway.domain.refused import Refused
from weft_gateway.domain.registration_token import TokenView, check_token, evolve_token, token_shape
from weft_testing import HandLog

SECRET, OTHER = "weft-join-one", "weft-join-other"
ID = token_id(SECRET)
CREATED = Created(hash=token_hash(SECRET), approves=True, expires_at=None, name="rack 4", most_waiting=7)


def after(*facts: Fact) -> TokenView | None:
    log, found = HandLog(start_at=100.0), None
    for fact in facts:
        found = evolve_token(found, log.given(token(ID), fact))
    return found


def tokens(*facts: Fact) -> dict[TokenId, TokenView]:
    found = after(*facts)
    return {} if found is None else {ID: found}


def refusal(known: dict[TokenId, TokenView], secret: str = SECRET, key: str = "UA", now: float = 0.0) -> str:
    with pytest.raises(Refused) as caught:
        check_token(known, secret, key, now)
    assert (401, "bad_token") == (caught.value.status, caught.value.code)
    return caught.value.sentence


def test_a_token_is_good_for_who_has_its_secret() -> None:
    assert ID == check_token(tokens(CREATED), SECRET, "UA", 0.0)
    assert "is not known here" in refusal(tokens(CREATED), OTHER)
    assert "is not known here" in refusal({})
    # another secret under its id
    assert "is not known here" in refusal({token_id(OTHER): tokens(CREATED)[ID]}, OTHER)


def test_a_revoked_token_is_good_for_nobody() -> None:
    assert "was revoked" in refusal(tokens(CREATED, Revoked()))


def test_a_token_ends_at_its_time() -> None:
    ends = tokens(CREATED.model_copy(update={"expires_at": 50.0}))
    assert ID == check_token(ends, SECRET, "UA", 49.9)
    assert "has expired" in refusal(ends, now=50.0)


def test_a_token_that_is_bound_serves_its_own_machines_alone() -> None:
    bound = tokens(CREATED, Bound(keys=("UA", "UB")))
    assert ID == check_token(bound, SECRET, "UB", 0.0)
    assert "is for other machines" in refusal(bound, key="UC")
    assert "is for other machines" in refusal(tokens(CREATED, Bound(keys=())))


def test_what_was_never_created_is_no_token() -> None:
    assert after(Revoked()) is None
    assert after(Bound(keys=("UA",))) is None
    assert {} == tokens(Bound(keys=()), Revoked())


def test_a_token_is_listed_without_its_hash() -> None:
    found = after(CREATED.model_copy(update={"expires_at": 200.0}))
    assert found is not None
    assert {
        "id": ID,
        "name": "rack 4",
        "state": "live",
        "auto_approve": True,
        "expires_at": 200.0,
        "created_at": 100.0,
        "most_waiting": 7,
    } == token_shape(ID, found, 199.9)


@pytest.mark.parametrize(
    ("facts", "now", "state"),
    [
        ((CREATED,), 1e12, "live"),
        ((CREATED.model_copy(update={"expires_at": 50.0}),), 50.0, "expired"),
        ((CREATED.model_copy(update={"expires_at": 50.0}), Revoked()), 50.0, "revoked"),
        ((CREATED, Bound(keys=("UA",))), 0.0, "live"),
    ],
)
def test_a_token_is_live_until_it_is_revoked_or_its_time_is_over(
    facts: tuple[Fact, ...], now: float, state: str
) -> None:
    found = after(*facts)
    assert found is not None
    assert state == token_shape(ID, found, now)["state"]

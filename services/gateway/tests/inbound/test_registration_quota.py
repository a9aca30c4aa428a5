"""For how many registrations a gateway finds quota, before any of them is folded."""

import base64
import binascii

import pytest
from weft_contracts.ids import NodeId, TokenId, node_id_of, token_hash, token_id
from weft_fleet import JoinLimits, Registrations
from weft_fleet.registrations import Waiting
from weft_gateway.domain.refused import Refused
from weft_gateway.domain.registration_token import TokenView, check_token
from weft_gateway.inbound.nodes.registration_quota import RegistrationQuota

ASKS, APPROVES = TokenView("", approves=False, expires_at=None), TokenView("", approves=True, expires_at=None)
NOW = 6000.0
TOKEN = TokenId("t-a")


def nkey(number: int) -> str:
    raw = bytes([20 << 3]) + number.to_bytes(32, "big")
    return base64.b32encode(raw + binascii.crc_hqx(raw, 0).to_bytes(2, "little")).decode()


def test_those_under_way_count_until_they_are_answered_and_of_the_minute_to_its_end() -> None:
    quota = RegistrationQuota(Registrations(), JoinLimits(in_all=3, per_token=2))
    with quota.entered(TOKEN, nkey(1), ASKS, NOW), quota.entered(TOKEN, nkey(2), ASKS, NOW + 1):
        with pytest.raises(Refused) as refused, quota.entered(TOKEN, nkey(3), ASKS, NOW + 2):
            pass
        assert (429, {"retry-after": "58"}) == (refused.value.status, refused.value.headers)
        with pytest.raises(Refused), quota.entered(TOKEN, nkey(3), ASKS, NOW + 60):
            pass
        # of a token that approves nobody comes to wait
        with quota.entered(TokenId("t-b"), nkey(3), APPROVES, NOW + 60):
            pass
    with quota.entered(TOKEN, nkey(3), ASKS, NOW + 60):
        pass


def test_one_that_is_folded_before_its_answer_is_under_way_counts_once() -> None:
    # given room for two, and one that is answered while the log already has it
    known = Registrations()
    quota = RegistrationQuota(known, JoinLimits(per_token=2))
    with quota.entered(TOKEN, nkey(1), ASKS, NOW):
        known.waiting[node_id_of(nkey(1))] = Waiting(TOKEN, NOW)
        # then there is room for a second, and for no third
        second, third = (quota.entered(TOKEN, nkey(number), ASKS, NOW + 60) for number in (2, 3))
        with second, pytest.raises(Refused) as refused, third:
            pass
    assert "wait for approval already" in refused.value.sentence


def test_all_tokens_together_have_a_bound_and_a_tokens_own_goes_over_the_setting() -> None:
    quota = RegistrationQuota(Registrations(), JoinLimits(in_all=3, per_token=1))
    own = TokenView("", approves=True, expires_at=None, most_waiting=9)
    for number in (1, 2, 3):
        with quota.entered(TOKEN, nkey(number), own, NOW):
            pass
    with pytest.raises(Refused) as refused, quota.entered(TokenId("t-b"), nkey(4), own, NOW):
        pass
    assert "this mesh" in refused.value.sentence


def test_nodes_that_are_approved_are_not_counted() -> None:
    known = Registrations(approved={node_id_of(nkey(1)): None})
    quota = RegistrationQuota(known, JoinLimits(in_all=1, per_token=1))
    for _ in range(3):
        with quota.entered(TOKEN, nkey(1), ASKS, NOW):
            pass
    assert NodeId("n-none") not in known.approved


def test_what_the_registry_finds_too_many_bears_when_to_come_again() -> None:
    quota = RegistrationQuota(Registrations(), JoinLimits())
    with pytest.raises(Refused) as refused, quota.entered(TOKEN, nkey(1), ASKS, NOW):
        raise Refused(429, "Too many.")
    assert 1 <= int(refused.value.headers["retry-after"])


def test_a_token_that_is_bound_is_no_good_to_another_key() -> None:
    bound = TokenView(token_hash("s"), approves=True, expires_at=None, keys=(nkey(1),))
    views = {token_id("s"): bound}
    assert token_id("s") == check_token(views, "s", nkey(1), NOW)
    with pytest.raises(Refused) as refused:
        check_token(views, "s", nkey(2), NOW)
    assert (401, "bad_token") == (refused.value.status, refused.value.code)

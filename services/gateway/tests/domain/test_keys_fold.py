"""Keys folded from the log, and what they let in: whatever order facts come in."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.api_key import ENTROPY_BYTES, first_key, hash_of, key_id, parse_first_key, prefix_of, secret_of
from weft_contracts.commit import Recorded
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.key import Created, Revoked
from weft_contracts.facts.values import Scope
from weft_contracts.ids import CorrelationId, EventId, KeyId, is_id
from weft_contracts.subjects import api_key
from weft_gateway.domain.access import AuthContext, Policy, authenticate, recheck, required_scope
from weft_gateway.domain.keys import KeyView, evolve_key, key_shape
from weft_gateway.domain.refused import Refused
from weft_gateway.projections.keys import Keys

SECRETS = tuple(secret_of(bytes([n]) * ENTROPY_BYTES) for n in range(3))
SCOPES: tuple[Scope, ...] = ("admin", "inference", "read")
scopes = st.lists(st.sampled_from(SCOPES), min_size=1, unique=True).map(tuple)
Told = tuple[str, str, tuple[Scope, ...], float | None]
"""Of which secret, created or revoked, with which scopes, until when."""
told: st.SearchStrategy[list[Told]] = st.lists(
    st.tuples(st.sampled_from(SECRETS), st.sampled_from(("created", "revoked")), scopes, st.none() | st.floats(0, 100)),
    max_size=20,
)


def fact(said: Told) -> Fact:
    secret, what, its_scopes, until = said
    if what == "revoked":
        return Revoked()
    return Created(hash=hash_of(secret), prefix=prefix_of(secret), scopes=its_scopes, expires_at=until)


def folded(history: Sequence[Told]) -> Keys:
    keys = Keys()
    for number, said in enumerate(history, 1):
        aggregate = api_key(key_id(hash_of(said[0])))
        keys.fold(
            [
                Recorded(
                    number, aggregate, (fact(said),), EventId("e"), CorrelationId("c"), None, "k-admin", float(number)
                )
            ]
        )
    return keys


def lets_in(keys: Keys, secret: str, needed: Scope, now: float, policy: Policy = "keys") -> bool:
    shown = AuthContext("127.0.0.1", "localhost", None, f"Bearer {secret}")
    try:
        caller = authenticate(shown, needed, policy, keys.by_hash, now)
    except Refused:
        return False
    assert key_id(hash_of(secret)) == caller.actor
    return True


@given(told, st.sampled_from(SECRETS), st.sampled_from(SCOPES), st.floats(0, 100))
def test_a_key_lets_in_from_its_creation_to_its_end_and_never_again(
    history: list[Told], secret: str, needed: Scope, now: float
) -> None:
    # given what a list of what was said says by itself
    own = [said for said in history if said[0] == secret]
    first = next((place for place, said in enumerate(own) if said[1] == "created"), None)
    good = False
    if first is not None:
        _, _, its_scopes, until = own[first]
        ended = any(said[1] == "revoked" for said in own[first:])
        good = not ended and (until is None or now < until) and ("admin" in its_scopes or needed in its_scopes)
    # then authentication says the same, under each policy
    keys = folded(history)
    for policy in ("keys", "local", "anyone"):
        assert good == lets_in(keys, secret, needed, now, policy)


@given(told, st.text(max_size=80))
def test_nothing_else_lets_in(history: list[Told], said: str) -> None:
    keys = folded(history)
    if said.strip() not in SECRETS:
        shown = AuthContext("10.0.0.1", "weft.example", None, f"Bearer {said}")
        with pytest.raises(Refused) as refused:
            authenticate(shown, "inference", "keys", keys.by_hash, 0.0)
        assert 401 == refused.value.status


@given(told)
def test_what_is_shown_and_kept_of_keys_holds_no_secret(history: list[Told]) -> None:
    keys = folded(history)
    seen = repr(keys) + repr([key_shape(view, "name", 0.0) for view in keys.views.values()])
    assert [] == [secret for secret in SECRETS if secret in seen or secret[len(prefix_of(secret)) :] in seen]
    assert all(view.hash not in repr(key_shape(view, None, 0.0)) for view in keys.views.values())


@given(told)
def test_keys_are_found_by_their_hashes_again_when_a_snapshot_is_restored(history: list[Told]) -> None:
    keys = folded(history)
    again = Keys(views=dict(keys.views))
    again.on_restored()
    assert keys.by_hash == again.by_hash


def test_who_came_in_by_a_key_that_has_ended_since_begins_nothing() -> None:
    keys = folded([(SECRETS[0], "created", ("inference",), 50.0)])
    caller = authenticate(AuthContext(None, "x", None, f"Bearer {SECRETS[0]}"), "inference", "keys", keys.by_hash, 10.0)
    recheck(caller, keys.by_hash, 49.0)
    with pytest.raises(Refused):
        recheck(caller, keys.by_hash, 50.0)
    with pytest.raises(Refused):
        recheck(caller, {}, 10.0)


def test_a_revocation_without_a_creation_is_no_key() -> None:
    revoked = Recorded(1, api_key(key_id("0" * 64)), (Revoked(),), EventId("e"), CorrelationId("c"), None, "a", 1.0)
    assert evolve_key(None, revoked) is None


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("POST", "/v1/chat/completions", "inference"),
        ("GET", "/v1/models", "inference"),
        ("GET", "/api/status", "read"),
        ("HEAD", "/api/status", "read"),
        ("GET", "/metrics", "read"),
        ("POST", "/api/models", "admin"),
        ("DELETE", "/api/keys/k-1", "admin"),
        ("OPTIONS", "/api/status", "admin"),
        ("POST", "/whatever/comes", "admin"),
        ("POST", "/V1/chat/completions", "admin"),
    ],
)
def test_a_route_that_nobody_thought_of_needs_an_admin(method: str, path: str, scope: Scope) -> None:
    assert scope == required_scope(method, path)


@given(st.binary(min_size=ENTROPY_BYTES, max_size=ENTROPY_BYTES))
def test_a_secret_has_a_public_part_and_256_bits_behind_it(entropy: bytes) -> None:
    secret = secret_of(entropy)
    assert (57, 13) == (len(secret), len(prefix_of(secret)))
    assert entropy[:4].hex() == prefix_of(secret).removeprefix("weft-")
    assert is_id(key_id(hash_of(secret)))
    assert (prefix_of(secret), hash_of(secret)) == parse_first_key(first_key(secret))
    assert secret not in first_key(secret)


BROKEN = ("", "weft-00000000", ":", "weft-0000000g:" + "0" * 64, "weft-00000000:" + "0" * 63, SECRETS[0])


@pytest.mark.parametrize("text", BROKEN)
def test_what_names_no_first_key_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match="as `weft keys first` prints it"):
        parse_first_key(text)


def test_a_key_is_live_until_it_expires() -> None:
    view = KeyView(key_id("0" * 64), "0" * 64, "weft-00000000", ("read",), None, 10.0, 0.0, "anonymous", 1)
    assert ("live", "expired") == (view.state(9.9), view.state(10.0))
    assert (True, False) == (view.may("read"), view.may("inference"))


def test_a_key_is_listed_without_its_hash() -> None:
    view = KeyView(KeyId("k-1"), "h", "weft-ab", ("read",), ("toy",), 50.0, 1.0, "anonymous", 3)
    listed = {
        "id": "k-1",
        "name": "ci",
        "prefix": "weft-ab",
        "scopes": ["read"],
        "models": ["toy"],
        "state": "live",
        "expires_at": 50.0,
        "created_at": 1.0,
        "created_by": "anonymous",
        "revoked_at": None,
    }
    assert listed == key_shape(view, "ci", 49.9)
    assert listed | {"state": "expired"} == key_shape(view, "ci", 50.0)
    revoked = replace(view, models=None, revoked_at=9.0)
    assert listed | {"state": "revoked", "models": None, "revoked_at": 9.0} == key_shape(revoked, "ci", 50.0)

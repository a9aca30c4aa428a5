"""Keys to text and back."""

import importlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_identity.nkey import BadKey, KeyPair, Role, expect_role, role_of, signed_by


@pytest.mark.parametrize("role", list(Role))
def test_a_key_comes_back_from_its_seed_and_its_signature_is_its_own(role: Role):
    key = KeyPair.new(role)

    again = KeyPair.from_seed(key.seed)

    assert (key.public, role, key.seed) == (again.public, again.role, again.seed)
    assert signed_by(key.public, b"message", again.sign(b"message"))
    assert not signed_by(key.public, b"another", again.sign(b"message"))
    assert not signed_by(KeyPair.new(role).public, b"message", again.sign(b"message"))
    assert role_of(key.public) is role


@pytest.mark.parametrize("role", list(Role))
def test_the_texts_are_those_of_the_nkeys_library(role: Role):
    nkeys = importlib.import_module("nkeys")
    key = KeyPair.new(role)

    theirs = nkeys.from_seed(bytearray(key.seed.encode()))

    assert key.public == theirs.public_key.decode()
    assert key.sign(b"nonce") == theirs.sign(b"nonce")


@given(st.integers(0, 57), st.characters(categories=["Lu", "Nd"]))
def test_a_seed_with_one_other_character_is_refused_and_not_repeated(place: int, other: str):
    seed = "SUAAR6UL4N3AKK2FNJWSCUEATIV7GO72LHCRQF76BDG2AYTHKO67FYZLQM"
    key_text = KeyPair.new(Role.USER).seed if len(seed) != 58 else seed
    damaged = key_text[:place] + other + key_text[place + 1 :]
    if damaged == key_text:
        return

    with pytest.raises(BadKey) as refused:
        KeyPair.from_seed(damaged)

    assert damaged not in str(refused.value)


def test_what_is_no_seed_is_refused():
    for text in ("", "S", "SU", "not a key at all", KeyPair.new(Role.USER).public, "é" * 58):
        with pytest.raises(BadKey):
            KeyPair.from_seed(text)


def test_a_seed_is_no_public_key_and_a_user_no_account():
    user = KeyPair.new(Role.USER)

    with pytest.raises(BadKey):
        role_of(user.seed)
    with pytest.raises(BadKey, match="user, not account"):
        expect_role(user.public, Role.ACCOUNT)


def test_a_printed_key_shows_no_secret():
    key = KeyPair.new(Role.ACCOUNT)

    assert key.public in repr(key)
    assert key.seed not in repr(key)
    assert "Signing" not in repr(key)

"""Ids: a node is its key, in one spelling only."""

import base64
import binascii

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.ids import is_id, name_key, node_id, node_id_of, token_hash, token_id

KEY = bytes(range(32))


def text(prefix: int, key: bytes) -> str:
    raw = bytes([prefix]) + key
    return base64.b32encode(raw + binascii.crc_hqx(raw, 0).to_bytes(2, "little")).decode()


USER = text(20 << 3, KEY)


@given(st.binary(min_size=32, max_size=32))
def test_a_node_is_its_public_key(key: bytes) -> None:
    assert node_id(key) == node_id_of(text(20 << 3, key))
    assert is_id(node_id(key))


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("", "nkey user key"),
        (USER[:-1], "nkey user key"),
        (USER.lower(), "nkey user key"),
        (USER + "AAAAAAAA", "nkey user key"),
        (text(0, KEY), "nkey user key"),
        (text((20 << 3) + 1, KEY), "nkey user key"),
        (USER[:10] + ("A" if USER[10] != "A" else "B") + USER[11:], "checksum"),
        (USER[:-1] + ("A" if USER[-1] != "A" else "B"), "checksum"),
    ],
)
def test_what_is_no_users_key_is_refused(key: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        node_id_of(key)


@given(st.text())
def test_any_text_is_a_key_or_refused_with_a_sentence(given_text: str) -> None:
    with pytest.raises(ValueError, match="key"):
        node_id_of(given_text)


@given(st.text(min_size=1, max_size=300))
def test_any_name_and_secret_give_an_id_that_may_stand_in_a_subject(given_text: str) -> None:
    assert is_id(name_key("node", given_text))
    assert is_id(token_id(given_text))
    assert 64 == len(token_hash(given_text))

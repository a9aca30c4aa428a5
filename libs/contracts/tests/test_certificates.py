"""What a certificate names, what a token carries of the authority, and which keys certificates are made for."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.certificates import (
    authority_digest,
    check_key,
    node_role,
    pinned_token,
    role_uri,
    roles_in,
    server_name,
    split_token,
)
from weft_contracts.ids import NodeId

# A point of P-256 and its SubjectPublicKeyInfo: the base point, SEC 2 section 2.4.2.
X = "6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"
Y = "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"
HEAD = "3059301306072a8648ce3d020106082a8648ce3d03010703420004"
TEXT = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_", min_size=1)


def spki(x: str = X, y: str = Y, head: str = HEAD) -> str:
    return base64.b64encode(bytes.fromhex(head + x + y)).decode()


def test_a_role_is_read_from_its_uri_whatever_the_mesh() -> None:
    uris = [
        role_uri("w-a", "gateway"),
        role_uri("w-b", node_role(NodeId("n-1"))),
        "https://elsewhere/gateway",
        "weft://",
    ]
    assert {"gateway", "node/n-1"} == roles_in(uris)


def test_a_node_and_a_service_have_names_that_no_address_has() -> None:
    assert "n-1.node.weft.internal" == server_name(node_role(NodeId("n-1")))
    assert "gateway.weft.internal" == server_name("gateway")


@given(TEXT, st.binary())
def test_a_pinned_token_gives_its_secret_and_its_digest_back(secret: str, authority: bytes) -> None:
    digest = authority_digest(authority)
    assert (secret, digest) == split_token(pinned_token(secret, digest) + "\n")


@given(TEXT)
def test_a_token_without_a_digest_is_its_secret(secret: str) -> None:
    assert (secret, None) == split_token(secret)


@given(TEXT, st.integers(0, 42))
def test_a_token_that_was_cut_off_is_refused(secret: str, length: int) -> None:
    whole = authority_digest(b"an authority")
    with pytest.raises(ValueError, match="not whole"):
        split_token(pinned_token(secret, whole[:length]))


def test_a_key_on_the_curve_is_taken() -> None:
    assert bytes.fromhex(HEAD + X + Y) == check_key(spki())


@given(st.binary(min_size=32, max_size=32).filter(lambda y: y.hex() != Y))
def test_a_point_off_the_curve_is_refused(y: bytes) -> None:
    negative = (2**256 - 2**224 + 2**192 + 2**96 - 1) - int(Y, 16)
    if int.from_bytes(y) != negative:
        with pytest.raises(ValueError, match="no point"):
            check_key(spki(y=y.hex()))


@pytest.mark.parametrize(
    "key",
    [
        "",
        "no base64 at all",
        spki()[:-4],
        spki(head=HEAD.replace("0107", "0106")),
        base64.b64encode(b"x" * 91).decode(),
    ],
)
def test_what_is_no_key_on_p256_is_refused_in_a_sentence(key: str) -> None:
    with pytest.raises(ValueError, match="on the curve P-256"):
        check_key(key)

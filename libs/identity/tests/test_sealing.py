"""What is sealed opens for one key and one purpose alone."""

import base64
import binascii
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from weft_identity import nkey, sealing
from weft_identity.mesh_exports import mesh_exports
from weft_identity.nkey import KeyPair, Role
from weft_identity.trust import load, load_or_make

KEY = X25519PrivateKey.generate()
PUBLIC = sealing.public_bytes(KEY)


def test_a_sealed_value_opens_for_its_key_and_shows_nothing_but_its_length() -> None:
    sealed = [sealing.seal(b"the value", PUBLIC, b"a") for _ in range(2)]
    assert sealed[0] != sealed[1]
    assert [len(b"the value") + sealing.OVERHEAD] * 2 == [len(each) for each in sealed]
    assert not any(b"value" in each for each in sealed)
    assert [b"the value"] * 2 == [sealing.open_sealed(each, KEY, b"a") for each in sealed]


@pytest.mark.parametrize("change", ["another key", "another purpose", "damaged", "cut short"])
def test_it_opens_for_no_other_key_and_purpose(change: str) -> None:
    sealed = sealing.seal(b"the value", PUBLIC, b"a")
    key = X25519PrivateKey.generate() if change == "another key" else KEY
    bound_to = b"b" if change == "another purpose" else b"a"
    if change == "damaged":
        sealed = sealed[:-1] + bytes([sealed[-1] ^ 1])
    if change == "cut short":
        sealed = sealed[:20]
    with pytest.raises(sealing.CannotOpen):
        sealing.open_sealed(sealed, key, bound_to)


def test_every_registry_of_a_mesh_has_one_key_and_another_mesh_another(tmp_path: Path) -> None:
    trust = load_or_make(tmp_path / "a", mesh_exports())
    own = sealing.public_bytes(sealing.registry_key(trust))
    assert own == sealing.public_bytes(sealing.registry_key(load(tmp_path / "a")))
    assert own != sealing.public_bytes(sealing.registry_key(load_or_make(tmp_path / "b", mesh_exports())))


def test_a_key_that_names_no_point_is_refused_without_being_shown() -> None:
    public = KeyPair.new(Role.USER).public
    assert 32 == len(nkey.for_agreement(public))
    raw = bytes([Role.USER]) + (2).to_bytes(32, "little")
    bad = base64.b32encode(raw + binascii.crc_hqx(raw, 0).to_bytes(2, "little")).decode().rstrip("=")
    with pytest.raises(nkey.BadKey) as refused:
        nkey.for_agreement(bad)
    assert bad not in str(refused.value)

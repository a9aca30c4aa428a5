"""What is in the layers of the images: nothing secret, and the same whenever they are built of the same."""

import secrets
from pathlib import Path

import pytest
from weft_testing.containers.layers import SHAPES, files_with, layers

from .conftest import Built

SECRETS = (
    "weft-0123abcd-Zm9yIGEgdGVzdCBhbG9uZSwgbm90aGluZyBvcGVucyBi",
    "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIFRoaXMgaXMgbm8ga2V5IGF0IGFsbCwgbm90",
    r"-----BEGIN EC PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIFRoaXMgaXMgbm8ga2V5IGF0IGFsbCwgbm90",
    "-----BEGIN USER NKEY SEED-----\nSUAGEZTTONXXEIDUMVZXIIDBNRXW4ZJAONSWKZBANZXXEIDUNBSSA4DMME",
    "whsec_Zm9yIGEgdGVzdCBhbG9uZSwgbm90aGluZyBvcGVucyBi",
)
"""None of them opens anything."""
HARMLESS = (
    "weft-0123abcd-…",
    "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----",
    "re.compile('-----BEGIN PRIVATE KEY-----')",
    "ASUAGEZTTONXXEIDUMVZXIIDBNRXW4ZJAONSWKZBANZXXEIDUNBSSA4DMMEAAAA",
    "`whsec_` and 24 bytes",
)
AGAIN = "registry"
"""The first of the services in the Containerfile, so that no other is built on the way to it."""


def test_a_secret_in_a_layer_is_found_and_what_only_speaks_of_one_is_not(tmp_path: Path) -> None:
    for name, texts in (("secret", SECRETS), ("harmless", HARMLESS)):
        (tmp_path / name).mkdir()
        for at, text in enumerate(texts):
            (tmp_path / name / str(at)).write_bytes(b"\x00\xff" + text.encode() + b"\n\x00")
    assert [str(tmp_path / "secret" / str(at)) for at in range(len(SECRETS))] == files_with([tmp_path], shapes=SHAPES)
    assert [str(tmp_path / "secret/0")] == files_with([tmp_path], texts=[SECRETS[0]])


@pytest.mark.slow
def test_no_layer_of_an_image_has_a_key_in_it(built: Built) -> None:
    podman, base = built.builder.podman, built.builder.base
    own = layers(podman, built.images.values()) - layers(podman, [base])  # Debian's has a library's own test key
    assert len(own) > len(built.images)
    assert [] == files_with(own, shapes=SHAPES)


@pytest.mark.slow
def test_an_image_that_is_built_again_from_nothing_has_the_same_layers_and_no_secret_of_its_build(
    built: Built, tmp_path: Path
) -> None:
    # given what only the build may know
    marker = secrets.token_hex(20)
    (tmp_path / "index").write_text(f"UV_HTTP_TIMEOUT=30\nWEFT_MARK={marker}\n")
    again = built.builder.anew(AGAIN, tmp_path / "index")
    podman = built.builder.podman
    try:
        # then each layer is the same, byte for byte
        first, second = (podman.inspected(each, "image") for each in (built.images[AGAIN], again))
        assert first["RootFS"]["Layers"] == second["RootFS"]["Layers"]

        # and none has what the build was told
        own = layers(podman, [again]) - layers(podman, [built.builder.base])
        assert [] == files_with(own, texts=[marker])
        assert marker not in str(second)
    finally:
        podman.run("rmi", "--force", again)

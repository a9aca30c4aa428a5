"""The credentials of Weft's own services."""

from pathlib import Path

import pytest
from weft_contracts.catalogue import SERVICES, Writer
from weft_identity.mesh_exports import mesh_exports, service_credentials
from weft_identity.trust import load_or_make

LINE = 4096
"""Bytes of a line that a NATS server takes, unless it is told otherwise."""
BESIDE = 600
"""What a client says of itself in the line that holds the token: name, signature, version."""


@pytest.mark.parametrize("name", SERVICES)
def test_a_services_token_fits_the_line_by_which_it_connects(tmp_path: Path, name: Writer) -> None:
    trust = load_or_make(tmp_path / "trust", mesh_exports())
    assert len(service_credentials(trust, name).token) < LINE - BESIDE

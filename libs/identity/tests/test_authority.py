"""The mesh's authority: where its key lies, and what the certificates that it makes are good for."""

import socket
import ssl
import stat
import threading
from pathlib import Path

import pytest
from weft_contracts import certificates
from weft_identity import authority
from weft_identity.authority import Authority, new_key, public_der
from weft_identity.trust import ExposedTrust, NoTrust


@pytest.fixture
def trust(tmp_path: Path) -> Path:
    (tmp_path / "trust").mkdir(mode=0o700)
    return tmp_path / "trust"


def shown(folder: Path, *, by: Authority, name: str) -> str:
    """What a client that trusts an authority says of a server with this certificate: empty where it is well."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / certificates.CERTIFICATE, folder / certificates.KEY)
    client = ssl.create_default_context(cadata=by.pem)
    here, there = socket.socketpair()

    def serve() -> None:
        try:
            server.wrap_socket(there, server_side=True).close()
        except OSError:
            there.close()

    serving = threading.Thread(target=serve)
    serving.start()
    try:
        with client.wrap_socket(here, server_hostname=name):
            return ""
    except ssl.SSLCertVerificationError as error:
        return error.verify_message
    finally:
        here.close()
        serving.join(5)


def test_the_authority_is_made_once_and_its_key_is_its_owners(trust: Path) -> None:
    first, again = authority.load_or_make(trust), authority.load_or_make(trust)

    assert first.digest == again.digest
    assert first.mesh == again.mesh
    assert 0o600 == stat.S_IMODE((trust / authority.KEY_FILE).stat().st_mode)


def test_a_key_that_others_can_read_is_refused(trust: Path) -> None:
    authority.load_or_make(trust)
    (trust / authority.KEY_FILE).chmod(0o604)

    with pytest.raises(ExposedTrust, match="chmod 600"):
        authority.load(trust)


def test_a_key_of_another_authority_is_refused(trust: Path, tmp_path: Path) -> None:
    authority.load_or_make(trust)
    (tmp_path / "other").mkdir()
    authority.load_or_make(tmp_path / "other")
    (trust / authority.KEY_FILE).write_bytes((tmp_path / "other" / authority.KEY_FILE).read_bytes())

    with pytest.raises(NoTrust, match="don't fit"):
        authority.load(trust)


def test_a_folder_without_an_authority_is_told(trust: Path) -> None:
    with pytest.raises(NoTrust, match="certificate authority"):
        authority.load(trust)


def test_a_service_is_known_by_its_role_and_by_the_hosts_that_it_was_given(trust: Path, tmp_path: Path) -> None:
    mine = authority.load_or_make(trust)
    mine.lay_out(tmp_path / "gateway", certificates.GATEWAY, ["front.example.net", "10.1.2.3"])

    for name in ("gateway.weft.internal", "front.example.net", "10.1.2.3"):
        assert "" == shown(tmp_path / "gateway", by=mine, name=name), name
    assert "Hostname mismatch" in shown(tmp_path / "gateway", by=mine, name="nats.weft.internal")


def test_the_certificate_of_another_mesh_is_worth_nothing(trust: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    authority.load_or_make(tmp_path / "other").lay_out(tmp_path / "gateway", certificates.GATEWAY)

    said = shown(tmp_path / "gateway", by=authority.load_or_make(trust), name="gateway.weft.internal")

    assert "self-signed certificate" in said


def test_a_certificate_is_good_since_yesterday_and_ends_when_it_should(trust: Path, tmp_path: Path) -> None:
    mine = authority.load_or_make(trust)
    mine.lay_out(tmp_path / "late", certificates.GATEWAY, lasts_s=-1)
    mine.lay_out(tmp_path / "good", certificates.GATEWAY, lasts_s=60)

    assert "certificate has expired" == shown(tmp_path / "late", by=mine, name="gateway.weft.internal")
    assert "" == shown(tmp_path / "good", by=mine, name="gateway.weft.internal")


def test_a_certificate_is_made_for_the_key_that_was_checked(trust: Path) -> None:
    key = new_key()
    chain = authority.load_or_make(trust).chain(public_der(key), "node/n-1", 60)

    first = chain.partition("-----END CERTIFICATE-----")[0] + "-----END CERTIFICATE-----"
    assert public_der(key) in ssl.PEM_cert_to_DER_cert(first)
    assert 2 == chain.count("BEGIN CERTIFICATE")

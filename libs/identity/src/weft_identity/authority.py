"""The mesh's own certificate authority: its key lies in the trust folder, mode 600, and never leaves it.

Imported only where certificates are made: `cryptography` costs 5 MB and a tenth of a second.
"""

import datetime
import ipaddress
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from weft_contracts import certificates

from weft_identity.trust import ExposedTrust, NoTrust

KEY_FILE = "authority.key"
SERVICE_S = 397 * 86_400.0
"""How long a service's certificate lasts: it is made anew at every start of its mesh."""
_AUTHORITY_DAYS = 3650
_BACKDATED = datetime.timedelta(days=1)
"""Clocks are off: a fresh certificate is good a day ago already."""


@dataclass(frozen=True, slots=True)
class Authority:
    """The authority's certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey = field(repr=False)

    @property
    def pem(self) -> str:
        """The certificate, as files and credentials have it."""
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    @property
    def digest(self) -> str:
        """What registration tokens carry of it."""
        return certificates.authority_digest(self._der)

    @property
    def mesh(self) -> str:
        """The mesh's name in certificates."""
        return certificates.mesh_id(self._der)

    @property
    def _der(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.DER)

    def chain(self, public_key: bytes, role: str, lasts_s: float, hosts: Iterable[str] = ()) -> str:
        """A certificate for a public key (DER, `certificates.check_key`), and the authority's behind it: PEM.

        `hosts` are names and addresses that the bearer may serve under, besides that of its role. They must not come
        from the bearer: whoever bears the certificate is believed to be there. Raises ValueError for a bad key.
        """
        key = serialization.load_der_public_key(public_key)
        if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
            raise ValueError("a certificate is made for a key on the curve P-256")
        names: list[x509.GeneralName] = [
            x509.UniformResourceIdentifier(certificates.role_uri(self.mesh, role)),
            x509.DNSName(certificates.server_name(role)),
            *(_name(host) for host in dict.fromkeys(hosts)),
        ]
        usage = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        own = (
            _builder(_named(f"{role} of {self.mesh}"), self.certificate.subject, key, lasts_s)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.ExtendedKeyUsage(usage), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()),
                critical=False,
            )
            .sign(self.key, hashes.SHA256())
        )
        return own.public_bytes(serialization.Encoding.PEM).decode() + self.pem

    def lay_out(self, folder: Path, role: str, hosts: Iterable[str] = (), *, lasts_s: float = SERVICE_S) -> None:
        """Write a new key, its certificate and the authority's into a folder, as services read them. Raises OSError."""
        key = new_key()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        chain = self.chain(public_der(key), role, lasts_s, hosts)
        _write(folder / certificates.KEY, key_pem(key))
        _write(folder / certificates.AUTHORITY, self.pem.encode())
        _write(folder / certificates.CERTIFICATE, chain.encode())


def load_or_make(folder: Path) -> Authority:
    """The authority of a trust folder; made if it has none. Raises NoTrust, ExposedTrust, OSError."""
    if not (folder / KEY_FILE).exists():
        key = new_key()
        name = _named("Weft mesh")
        identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        certificate = (
            _builder(name, name, key.public_key(), _AUTHORITY_DAYS * 86_400.0)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .add_extension(identifier, critical=False)
            .sign(key, hashes.SHA256())
        )
        _write(folder / certificates.AUTHORITY, certificate.public_bytes(serialization.Encoding.PEM))
        _write(folder / KEY_FILE, key_pem(key))  # last: it says that the other is there
    return load(folder)


def load(folder: Path) -> Authority:
    """The authority of a trust folder.

    Raises:
        NoTrust: there is none, or key and certificate are damaged or don't belong together.
        ExposedTrust: others on this machine can read its key.
    """
    file = folder / KEY_FILE
    try:
        if file.stat().st_mode & 0o007:
            raise ExposedTrust(
                f"{file} can be read by everyone on this machine: chmod 600 it, and replace the mesh's authority"
            )
        key = serialization.load_pem_private_key(file.read_bytes(), None)
        certificate = x509.load_pem_x509_certificate((folder / certificates.AUTHORITY).read_bytes())
    except (OSError, ValueError) as e:
        raise NoTrust(f"{folder} doesn't hold a certificate authority: {type(e).__name__} {e}") from e
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        raise NoTrust(f"{folder} doesn't hold a certificate authority: its key and its certificate don't fit")
    return Authority(certificate, key)


def new_key() -> ec.EllipticCurvePrivateKey:
    """A new key on the curve P-256."""
    return ec.generate_private_key(ec.SECP256R1())


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """A key as files have it."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def public_der(key: ec.EllipticCurvePrivateKey) -> bytes:
    """The public half of a key, as `certificates.check_key` gives it."""
    return key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, lasts_s: float
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + datetime.timedelta(seconds=lasts_s))
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _named(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:64])])


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host.partition("%")[0]))
    except ValueError:
        return x509.DNSName(host)


def _write(file: Path, content: bytes) -> None:
    fresh = file.with_name(f"{file.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    os.replace(fresh, file)

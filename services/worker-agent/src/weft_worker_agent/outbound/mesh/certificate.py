"""The node's certificate: its key, made once, and what the mesh's authority signed for it, in the state folder.

`tls/` holds `key.pem`, `authority.pem` and `certificate.pem`, as engine hosts and the file server read them. A renewed
certificate replaces the last file, and counts for the next connection.
"""

import base64
import ssl
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from weft_contracts import certificates

from weft_worker_agent.outbound.files import private_file
from weft_worker_agent.outbound.supervisor.environment import PROGRAMS, chosen

FOLDER = "tls"
_PUBLIC = "key.pub"
_MAKE_S = 60.0
_MAKER = "weft_worker_agent.outbound.mesh.new_key"


class NoKey(Exception):
    """No key could be made or read; the message is a sentence."""


def secured(state: Path, gateway_url: str, digest: str | None) -> "NodeCertificate | None":
    """Where this node's certificate lies; None where the mesh speaks plainly.

    `digest`: of the authority, as the registration token says; None: it says nothing. Raises NoKey where a token of a
    mesh that speaks TLS would be sent in the clear.
    """
    found = NodeCertificate(state)
    if gateway_url.startswith("https://"):
        return found if digest is not None or found.authority is not None else None
    if digest is not None:
        raise NoKey(
            f"the registration token is of a mesh that speaks TLS, and {gateway_url} does not: join it by https://"
        )
    return None


@dataclass(frozen=True, slots=True)
class NodeCertificate:
    """The files of one state folder."""

    state: Path

    @property
    def folder(self) -> Path:
        """Where the three files lie."""
        return self.state / FOLDER

    @property
    def authority(self) -> str | None:
        """The authority's certificate (PEM) that this node trusts; None before the first."""
        found = private_file.read(self.folder / certificates.AUTHORITY)
        return None if found is None else found.decode(errors="replace")

    @property
    def there(self) -> bool:
        """Whether there is one to show."""
        return (self.folder / certificates.CERTIFICATE).exists()

    def clients(self) -> Callable[[], ssl.SSLContext]:
        """TLS to servers of the mesh, with what is here at each call, which raises OSError."""
        from weft_runtime.tls import TlsFolder

        return TlsFolder(self.folder).client

    def trust(self, authority: bytes) -> None:
        """Believe an authority, by its certificate (DER), from now on. Raises OSError."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        pem = ssl.DER_cert_to_PEM_cert(authority)
        if self.authority != pem:
            (self.folder / certificates.CERTIFICATE).unlink(missing_ok=True)  # the certificate of another mesh
            private_file.write(self.folder / certificates.AUTHORITY, pem.encode())

    def fits(self, chain: str) -> bool:
        """Whether a chain (PEM) is for this node's key: it stands in a certificate as it is."""
        public = private_file.read(self.folder / _PUBLIC)
        end = "-----END CERTIFICATE-----"
        if public is None or end not in chain:
            return False
        return public in ssl.PEM_cert_to_DER_cert(chain.partition(end)[0] + end)

    def store(self, chain: str) -> None:
        """Show this chain (PEM) from now on. Raises OSError."""
        if private_file.read(self.folder / certificates.CERTIFICATE) != chain.encode():
            private_file.write(self.folder / certificates.CERTIFICATE, chain.encode())

    def public_key(self) -> str:
        """For which key the node asks certificates when it registers (`certificates.check_key`). Raises NoKey."""
        try:
            public = private_file.read(self.folder / _PUBLIC)
            if public is None or not (self.folder / certificates.KEY).exists():
                public = self._make()
        except (OSError, subprocess.SubprocessError) as error:
            raise NoKey(f"the key of this node's certificate can't be made or read: {error}") from None
        return base64.b64encode(public).decode()

    def _make(self) -> bytes:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        made = subprocess.run(
            [sys.executable, "-m", _MAKER],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            check=True,
            timeout=_MAKE_S,
            env=chosen(PROGRAMS),
        ).stdout
        key, _, public = made.partition(b"\0")
        private_file.write(self.folder / certificates.KEY, key)
        private_file.write(self.folder / _PUBLIC, public)
        return public

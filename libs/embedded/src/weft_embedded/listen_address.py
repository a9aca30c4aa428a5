"""Where an embedded mesh listens, and whether it speaks TLS there.

On loopback everything is plain: nobody else hears it, and a token costs least. Anywhere else all of it is TLS by the
mesh's own authority. `WEFT_TLS=always` asks for that on loopback, too.
"""

import ipaddress
import json
import os
import socket
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

from weft_client.failure import Exit, Failure
from weft_servers.nats_conf import Listen
from weft_servers.port import LOOPBACK

from weft_embedded.state import State, read_json, write_private

ALWAYS = "always"
_WORDS = ("auto", ALWAYS)
_ANY = ("0.0.0.0", "::")


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """The address that gateway and NATS listen on, whether they speak TLS there, and the certificate that people's
    browsers are shown instead of the mesh's own."""

    listen: str = LOOPBACK
    tls: bool = False
    certificate: str | None = None
    key: str | None = None

    @property
    def loopback(self) -> bool:
        """Whether only this machine can come."""
        return ipaddress.ip_address(self.listen).is_loopback

    @property
    def here(self) -> str:
        """The address by which this machine itself reaches the mesh."""
        return Listen(self.listen).here

    def url(self, port: int) -> str:
        """Where the gateway answers this machine."""
        host = f"[{self.here}]" if ":" in self.here else self.here
        return f"{'https' if self.tls else 'http'}://{host}:{port}"

    def names(self) -> tuple[str, ...]:
        """Under which names and addresses people reach the gateway, as far as this machine knows."""
        import psutil

        found = ["localhost", LOOPBACK, "::1", *(name for name in {socket.gethostname(), socket.getfqdn()} if name)]
        if self.listen in _ANY:
            for addresses in psutil.net_if_addrs().values():
                found += [a.address for a in addresses if a.family in (socket.AF_INET, socket.AF_INET6)]
        else:
            found.append(self.listen)
        return tuple(dict.fromkeys(name.partition("%")[0] for name in found))


def chosen(state: State, listen: str | None, certificate: Path | None, key: Path | None) -> ListenAddress:
    """What this `up` was asked for; what it wasn't told is as last time: workers elsewhere know the address.

    Raises Failure for what can't be meant.
    """
    if (certificate is None) != (key is None):
        raise Failure("--tls-cert and --tls-key belong together: name both or none", Exit.USAGE)
    word = os.environ.get("WEFT_TLS") or "auto"
    if word not in _WORDS:
        raise Failure(f"WEFT_TLS={word}: want one of {', '.join(_WORDS)}", Exit.USAGE)
    known = read_json(state.settings) or {}
    last = known.get("reach")
    kept = cast("dict[str, str | None]", last) if isinstance(last, dict) else {}
    if listen is not None:
        try:
            address = str(ipaddress.ip_address(LOOPBACK if listen == "localhost" else listen))
        except ValueError:
            raise Failure(
                f"--listen {listen}: want an address of this machine, 0.0.0.0 for all of them, or 127.0.0.1", Exit.USAGE
            ) from None
        kept = {**kept, "listen": address}
    if certificate is not None and key is not None:
        for file in (certificate, key):
            if not file.expanduser().is_file():
                raise Failure(f"there is no file {file}", Exit.USAGE)
        kept = {**kept, "certificate": str(certificate.expanduser().absolute())}
        kept["key"] = str(key.expanduser().absolute())
    told = ListenAddress(kept.get("listen") or LOOPBACK, False, kept.get("certificate"), kept.get("key"))
    found = ListenAddress(told.listen, word == ALWAYS or not told.loopback, told.certificate, told.key)
    wanted = {name: value for name, value in asdict(found).items() if name != "tls"}
    if found != ListenAddress(tls=found.tls) and last != wanted:
        write_private(state.settings, json.dumps({**known, "reach": wanted}) + "\n")
    elif found == ListenAddress(tls=found.tls) and last is not None:
        write_private(state.settings, json.dumps({**known, "reach": None}) + "\n")
    return found


def elsewhere(url: str) -> str:
    """The address of a gateway as other machines know it, where it is known here by loopback and speaks TLS: then it
    listens everywhere, or for this machine alone, and nobody else can come anyway."""
    parts = urlsplit(url)
    if parts.scheme != "https" or parts.hostname not in (LOOPBACK, "::1"):
        return url
    import psutil

    for addresses in psutil.net_if_addrs().values():
        for each in addresses:
            if each.family == socket.AF_INET and not ipaddress.ip_address(each.address).is_loopback:
                return f"https://{each.address}:{parts.port}"
    return url

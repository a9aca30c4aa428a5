"""The node's credential and what it last registered, kept in the state folder."""

import contextlib
import json
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

from weft_worker_agent.outbound.files import private_file

_CREDENTIAL = "credential.json"
_REGISTERED = "registered.json"
_MARGIN_S = 10.0


@dataclass(frozen=True, slots=True)
class Credential:
    """What lets a node speak to the log. Times are seconds since the epoch, on the node's own clock."""

    jwt: str = field(repr=False)
    nats_url: str
    expires_at: float
    got_at: float = 0.0
    certificate: str = ""
    """Its own and the authority's (PEM); empty where the mesh speaks plainly."""

    def valid(self, now: float) -> bool:
        """Whether it can still be shown."""
        return now < self.expires_at - _MARGIN_S

    @property
    def nats_tls(self) -> dict[str, Any] | None:
        """How NATS is spoken to; None: plainly, or as its address says."""
        if not self.certificate:
            return None
        from weft_runtime.tls import client_context, nats_options

        begin = "-----BEGIN CERTIFICATE-----"
        return nats_options(client_context(begin + self.certificate.rpartition(begin)[2]))

    @property
    def renew_at(self) -> float:
        """Half of its life."""
        return self.got_at + max(1.0, (self.expires_at - self.got_at) / 2)


class BadCredential(ValueError):
    """The gateway's answer is no credential."""


def parse(body: object, now: float, ahead: float = 0.0) -> Credential:
    """A credential from the gateway's answer. Raises BadCredential.

    `ahead`: seconds that the gateway's clock is ahead of this machine's clock.
    """
    try:
        given = cast("dict[str, Any]", body)
        jwt, url, expires_at = str(given["jwt"]), str(given["nats_url"]), float(given["expires_at"]) - ahead
        return Credential(jwt, url, expires_at, now, str(given.get("certificate", "")))
    except (KeyError, TypeError, ValueError) as error:
        raise BadCredential(f"the gateway's answer is no credential: {error!r}") from None


def load(state: Path) -> Credential | None:
    """The stored credential; None if there is none that is still good."""
    with contextlib.suppress(OSError, ValueError, TypeError):
        if (text := private_file.read(state / _CREDENTIAL)) is not None:
            credential = Credential(**json.loads(text))
            return credential if credential.valid(time.time()) else None
    return None


def store(state: Path, credential: Credential) -> None:
    """Keep a credential for the next start. Raises OSError."""
    private_file.write(state / _CREDENTIAL, json.dumps(asdict(credential)).encode())


def registered(state: Path) -> dict[str, Any] | None:
    """What the node last registered with; None if it never did."""
    with contextlib.suppress(OSError, ValueError):
        if (text := private_file.read(state / _REGISTERED)) is not None:
            return cast("dict[str, Any]", json.loads(text))
    return None


def store_registered(state: Path, body: dict[str, Any] | None) -> None:
    """Remember what the node registered with; None: nothing. Raises OSError."""
    private_file.write(state / _REGISTERED, json.dumps(body).encode())

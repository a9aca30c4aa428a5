"""The NATS server's configuration, rendered. Its format is a superset of JSON; JSON is written."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weft_contracts.certificates import CERTIFICATE, KEY
from weft_identity.claims import BadToken, read
from weft_identity.operator_mode import OperatorMode

from weft_servers.port import LOOPBACK, bracketed

DEFAULT_MAX_PAYLOAD_BYTES = 1 << 20
NO_LIMIT = 1 << 50
"""Of storage, in bytes. The server's own would be three quarters of what is free at its start, against which it counts
what streams reserve: a mesh that was made on a large disk then can't start on a small one, whatever it holds. Streams'
limits follow the disk instead, and can be lowered; see `weft_contracts.disk`."""
MAX_BUFFERED_MESSAGES = 2048
"""That wait for a stream to store them; what comes then is refused. With the server's own 100,000, what a worker floods
the log with lies before everybody's facts for a minute and longer. An atomic batch has 1,000 at most."""
HANDSHAKE_WAIT = "500ms"
"""Our clients begin with the TLS handshake, so that nobody between can talk them out of it. Others hear after this time
that TLS is needed here. The server's own would be 50 ms, which a client on a busy machine misses: it then has to try
again."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """One of several servers: the port of its own route and those of all (its own may be among them)."""

    name: str
    port: int
    peers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Listen:
    """Where clients reach a server, and as what it shows itself there. Monitoring stays on loopback."""

    host: str = LOOPBACK
    tls: Path | None = None
    """Folder with `certificate.pem` and `key.pem`: clients must speak TLS; none: plain."""

    @property
    def here(self) -> str:
        """The address by which this machine itself reaches it."""
        return {"0.0.0.0": LOOPBACK, "::": "::1"}.get(self.host, self.host)

    def url(self, port: int) -> str:
        """Where this machine's clients connect."""
        return f"{'tls' if self.tls is not None else 'nats'}://{bracketed(self.here)}:{port}"


@dataclass(frozen=True, slots=True)
class NatsConf:
    """All that a server is told. Monitoring and routes listen on loopback.

    `folder` is the server's own: JetStream's store, the accounts' tokens and the log lie in it.
    """

    folder: Path
    port: int
    monitor_port: int
    name: str = "weft"
    operator: OperatorMode | None = None
    cluster: Cluster | None = None
    max_payload_bytes: int = DEFAULT_MAX_PAYLOAD_BYTES
    listen: Listen = field(default=Listen())
    store: Path = field(init=False)
    accounts: Path = field(init=False)
    log: Path = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "store", self.folder / "jetstream")
        object.__setattr__(self, "accounts", self.folder / "accounts")
        object.__setattr__(self, "log", self.folder / "nats.log")

    def render(self) -> str:
        """Return the text of the configuration file. It holds no secret."""
        conf: dict[str, Any] = {
            "server_name": self.name,
            "listen": f"{bracketed(self.listen.host)}:{self.port}",
            "http": f"{LOOPBACK}:{self.monitor_port}",
            "max_payload": self.max_payload_bytes,
            "log_file": str(self.log),
            "logfile_size_limit": 16 << 20,
            "logfile_max_num": 3,
            "jetstream": {
                "store_dir": str(self.store),
                "max_file_store": NO_LIMIT,
                # Acknowledged means on the disk: by default the server flushes every two minutes.
                "sync_interval": "always",
                "max_buffered_msgs": MAX_BUFFERED_MESSAGES,
                # A client that opens batches and never commits them holds up the others for this long.
                "limits": {"batch": {"timeout": "1s"}},
            },
        }
        if self.operator is not None:
            conf |= {
                "operator": self.operator.operator_token,
                "system_account": self.operator.system_account,
                "resolver": {"type": "full", "dir": str(self.accounts), "allow_delete": True},
                "resolver_preload": self._preload(self.operator.account_tokens),
            }
        if self.listen.tls is not None:
            conf |= {
                "allow_non_tls": False,
                "tls": {
                    "cert_file": str(self.listen.tls / CERTIFICATE),
                    "key_file": str(self.listen.tls / KEY),
                    "min_version": "1.2",
                    "handshake_first": HANDSHAKE_WAIT,
                    "timeout": 5,
                },
            }
        if self.cluster is not None:
            conf["cluster"] = {
                "name": self.cluster.name,
                "listen": f"{LOOPBACK}:{self.cluster.port}",
                "routes": [f"nats://{LOOPBACK}:{peer}" for peer in self.cluster.peers],
            }
        return json.dumps(conf, indent=1, ensure_ascii=False) + "\n"

    def _preload(self, tokens: Mapping[str, str]) -> dict[str, str]:
        """The tokens that the server's folder doesn't have, or has only in an older issue.

        The server itself lets a preloaded token win over one *of the same second* in its folder, and so would
        forget a revocation that was pushed in the second of the founding.
        """
        return {key: token for key, token in tokens.items() if _newer(token, self.accounts / f"{key}.jwt")}


def _newer(token: str, stored: Path) -> bool:
    try:
        return read(token).issued_at > read(stored.read_text()).issued_at
    except (OSError, BadToken):
        return True

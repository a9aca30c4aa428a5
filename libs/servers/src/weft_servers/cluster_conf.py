"""The configuration of NATS servers that an operator runs: one, or several that replicate among them.

Each has a folder of its own with all that it reads, named relatively: it is copied to the server's machine, and the
server is started in it. Clients and routes speak TLS by the mesh's own authority, and routes need a password besides:
every node has a certificate of that authority, too.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from weft_contracts.certificates import AUTHORITY, CERTIFICATE, KEY
from weft_identity.operator_mode import OperatorMode

from weft_servers.nats_conf import DEFAULT_MAX_PAYLOAD_BYTES, HANDSHAKE_WAIT, MAX_BUFFERED_MESSAGES
from weft_servers.port import LOOPBACK, bracketed

_FORM = re.compile(
    r"(?P<name>[A-Za-z0-9_-]{1,40})=(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)"
    r"(:(?P<port>[0-9]{1,5}))?(:(?P<route>[0-9]{1,5}))?(:(?P<monitor>[0-9]{1,5}))?"
)
FILE = "nats.conf"


class BadMember(ValueError):
    """A text that names no server; the message says what would."""


@dataclass(frozen=True, slots=True)
class Member:
    """One server: where clients, the other servers and, on its own machine, monitoring reach it."""

    name: str
    host: str
    port: int = 4222
    route_port: int = 6222
    monitor_port: int = 8222

    @property
    def text(self) -> str:
        """As `parse_member` reads it."""
        return f"{self.name}={bracketed(self.host)}:{self.port}:{self.route_port}:{self.monitor_port}"

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"tls://{bracketed(self.host)}:{self.port}"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a server runs, and what it finds there. By default: in its folder, on the address that it is known by."""

    listen: str | None = None
    """The address that it listens on; None: its host."""
    monitor: str = LOOPBACK
    keys: str = ""
    """Folder of its certificate; empty: the one that it is started in."""
    data: str = ""
    """Folder of JetStream's store and the accounts; empty: the one that it is started in."""
    store: int | None = None
    """Bytes that the server takes for JetStream (`max_file_store`); None: three quarters of what is free at its start.
    """


IN_ITS_FOLDER = Place()


def parse_member(text: str) -> Member:
    """`NAME=HOST[:PORT[:ROUTES[:MONITOR]]]`. Raises BadMember."""
    found = _FORM.fullmatch(text)
    ports = [int(found[each] or default) for each, default in _DEFAULTS] if found is not None else [0]
    if found is None or not all(1 <= port <= 65535 for port in ports) or len(set(ports)) < len(ports):
        raise BadMember(f"{text!r} names no server: want NAME=HOST[:PORT[:ROUTES[:MONITOR]]], such as n1=10.0.0.5")
    return Member(found["name"], found["host"].strip("[]"), *ports)


def checked_members(texts: Sequence[str]) -> tuple[Member, ...]:
    """The servers of one mesh. Raises BadMember: one is none, two bear one name, or they can't have a majority."""
    members = tuple(parse_member(text) for text in texts)
    if len({each.name for each in members}) < len(members):
        raise BadMember("two servers have the same name: each needs its own")
    if len(members) not in (1, 3, 5):
        raise BadMember(f"{len(members)} servers: want 1, or 3 or 5, of which most must live")
    return members


_DEFAULTS = (("port", 4222), ("route", 6222), ("monitor", 8222))


def render(
    member: Member,
    members: Sequence[Member],
    operator: OperatorMode,
    route_password: str,
    place: Place = IN_ITS_FOLDER,
) -> str:
    """Return a server's configuration. It holds the routes' password: mode 600."""
    files = {"cert_file": CERTIFICATE, "key_file": KEY, "ca_file": AUTHORITY}
    tls: dict[str, Any] = {name: str(PurePosixPath(place.keys, file)) for name, file in files.items()}
    tls |= {"min_version": "1.2", "timeout": 5}
    listen = bracketed(place.listen or member.host)
    conf: dict[str, Any] = {
        "server_name": member.name,
        "listen": f"{listen}:{member.port}",
        "http": f"{bracketed(place.monitor)}:{member.monitor_port}",
        "max_payload": DEFAULT_MAX_PAYLOAD_BYTES,
        "jetstream": {
            "store_dir": str(PurePosixPath(place.data, "jetstream")),
            **({"max_file_store": place.store} if place.store is not None else {}),
            # Acknowledged means on the disk: by default the server flushes every two minutes.
            "sync_interval": "always",
            "max_buffered_msgs": MAX_BUFFERED_MESSAGES,
            "limits": {"batch": {"timeout": "1s"}},
        },
        "operator": operator.operator_token,
        "system_account": operator.system_account,
        "resolver": {"type": "full", "dir": str(PurePosixPath(place.data, "accounts")), "allow_delete": True},
        "resolver_preload": dict(operator.account_tokens),
        "allow_non_tls": False,
        "tls": {**{k: v for k, v in tls.items() if k != "ca_file"}, "handshake_first": HANDSHAKE_WAIT},
    }
    if len(members) > 1:
        user = "route"
        conf["cluster"] = {
            "name": "weft",
            "listen": f"{listen}:{member.route_port}",
            "authorization": {"user": user, "password": route_password, "timeout": 5},
            "routes": [
                f"nats://{user}:{route_password}@{bracketed(each.host)}:{each.route_port}"
                for each in members
                if each is not member
            ],
            "tls": {**tls, "verify": True},
        }
    return json.dumps(conf, indent=1, ensure_ascii=False) + "\n"

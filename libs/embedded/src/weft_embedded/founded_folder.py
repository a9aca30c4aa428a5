"""The keys of a mesh whose parts others start, compose or Kubernetes: one folder, with a folder for each part.

    trust/                 the registry's alone: whoever reads it is the mesh
    services/NAME/         nats.creds, authority.pem, certificate.pem, key.pem
    nats/NAME/             nats.conf, authority.pem, certificate.pem, key.pem
    join-token             what workers join with
    admin-key              the first admin's key
    postgres-password, postgres-url
    founding.json          what it was founded for; said anew, it counts anew
    mesh.env               hashes and numbers, no secrets: of the token for the registry, of the key for the gateway

Founded again, keys and secrets stay, and credentials, certificates and configurations are made anew.
"""

import json
import secrets
from dataclasses import dataclass
from pathlib import Path

from weft_contracts import catalogue, certificates
from weft_contracts.api_key import first_key
from weft_contracts.ids import token_hash, token_id
from weft_identity import authority, trust
from weft_identity.mesh_exports import mesh_exports, service_credentials
from weft_servers.cluster_conf import FILE, BadMember, Member, Place, checked_members, render
from weft_servers.nats_conf import NO_LIMIT

from weft_embedded.own_secrets import admin_key, join_secret, kept
from weft_embedded.state import read_json, write_private

KEYS = "/run/weft"
"""Where a part finds its own folder of these, in its container."""
NATS_DATA = "/var/lib/weft/nats"
CREDENTIALS = "nats.creds"
DATABASE, DATABASE_USER = "weft", "weft"


@dataclass(frozen=True, slots=True)
class Founding:
    """What a mesh is founded for."""

    gateways: tuple[str, ...]
    """Names and addresses under which clients and workers reach the gateways."""
    members: tuple[Member, ...]
    nodes: int
    """So many nodes the join token approves; who joins beyond them waits for an admin."""
    postgres: str
    """Host, or host and port."""
    monitor: str
    """Where NATS servers answer about themselves."""


FOUNDED_FOR = "founding.json"


def remembered(folder: Path) -> Founding | None:
    """What a folder was founded for; None: it wasn't. Raises BadMember where that can't be read any more."""
    said = read_json(folder / FOUNDED_FOR)
    if said is None:
        return None
    try:
        members = checked_members([str(each) for each in said["nats"]])
        return Founding(
            tuple(said["gateways"]), members, int(said["nodes"]), str(said["postgres"]), str(said["monitor"])
        )
    except (KeyError, TypeError, ValueError) as error:
        raise BadMember(
            f"{folder / FOUNDED_FOR} is not as it was written ({error}): remove it, and say all anew"
        ) from None


def found(folder: Path, founding: Founding) -> None:
    """Make or renew all of it. Raises NoTrust, ExposedTrust, OSError."""
    for each in (folder, folder / "services", folder / "nats"):
        each.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(folder / FOUNDED_FOR, json.dumps(_as_said(founding), indent=1) + "\n")
    keys = trust.load_or_make(folder / "trust", mesh_exports())
    signer = authority.load_or_make(folder / "trust")
    for name in catalogue.SERVICES:
        own = folder / "services" / name
        signer.lay_out(own, name, founding.gateways if name == certificates.GATEWAY else ())
        write_private(own / CREDENTIALS, service_credentials(keys, name).text())
    routes = kept(folder / "nats" / "route-password", lambda: secrets.token_urlsafe(24))
    # The registry limits the streams themselves, by WEFT_NATS_STORE or WEFT_NATS_STORE_SIZE.
    place = Place(listen="0.0.0.0", monitor=founding.monitor, keys=KEYS, data=NATS_DATA, store=NO_LIMIT)
    for member in founding.members:
        own = folder / "nats" / member.name
        signer.lay_out(own, certificates.NATS, [member.host])
        write_private(own / FILE, render(member, founding.members, keys.operator_mode(), routes, place))
    admin = admin_key(folder / "admin-key")
    token, _ = certificates.split_token(join_secret(folder / "join-token"))
    write_private(folder / "join-token", certificates.pinned_token(token, signer.digest) + "\n")
    password = kept(folder / "postgres-password", lambda: secrets.token_urlsafe(24))
    write_private(folder / "postgres-url", f"postgresql://{DATABASE_USER}:{password}@{founding.postgres}/{DATABASE}\n")
    told = {
        "WEFT_BOOTSTRAP_TOKEN_ID": token_id(token),
        "WEFT_BOOTSTRAP_TOKEN_HASH": token_hash(token),
        "WEFT_BOOTSTRAP_TOKEN_NODES": founding.nodes,
        "WEFT_FIRST_KEY": first_key(admin),
    }
    write_private(folder / "mesh.env", "".join(f"{name}={value}\n" for name, value in told.items()))


def _as_said(founding: Founding) -> dict[str, object]:
    return {
        "gateways": list(founding.gateways),
        "nats": [each.text for each in founding.members],
        "nodes": founding.nodes,
        "postgres": founding.postgres,
        "monitor": founding.monitor,
    }

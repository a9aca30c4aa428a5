"""A founded folder as Kubernetes takes it: a Secret for each part, so that its pods are given theirs alone.

What is no secret comes as ConfigMaps: `mesh` (mesh.env, and where NATS is) and `authority`, by which others believe the
gateways. The admin's key stays in the folder: nothing in the cluster needs it.
"""

import base64
from pathlib import Path

from weft_contracts import catalogue, certificates
from weft_servers.cluster_conf import FILE, Member, checked_members
from weft_servers.port import LOOPBACK

from weft_embedded.founded_folder import CREDENTIALS, Founding

LABELS = {"app.kubernetes.io/part-of": "weft"}
MESH = "mesh"
AUTHORITY = "authority"
CA_FILE = "ca.crt"
"""As Gateway API's BackendTLSPolicy and others look for an authority."""
TRUST = "trust"
ALONE = ("join-token", "postgres-url", "postgres-password")
"""Files of the folder that are a Secret each, with themselves as the one key."""
_KEYS = (certificates.AUTHORITY, certificates.CERTIFICATE, certificates.KEY)


def members(count: int) -> tuple[Member, ...]:
    """The servers as the StatefulSet `nats` and its headless Service name them. Raises BadMember."""
    return checked_members([f"nats-{number}=nats-{number}.nats" for number in range(count)])


def unlike(founding: Founding) -> str | None:
    """What about a founding doesn't fit the manifests, as a sentence; None: it does."""
    if founding.members != members(len(founding.members)):
        said = ", ".join(each.text for each in founding.members)
        return f"in Kubernetes the servers are nats-0=nats-0.nats and so on, not {said}: say --nats for each"
    if founding.monitor == LOOPBACK:
        return "NATS would tell of itself on loopback alone, where no probe reaches it: say --monitor 0.0.0.0"
    return None


def of_folder(folder: Path, founding: Founding) -> dict[str, object]:
    """A List of them, for `kubectl apply`. It holds all that pods are given: secrets. Raises OSError."""
    secrets = {TRUST: sorted(each for each in (folder / "trust").iterdir() if each.is_file())}
    for name in catalogue.SERVICES:
        secrets[name] = [folder / "services" / name / file for file in (CREDENTIALS, *_KEYS)]
    for member in founding.members:
        secrets[member.name] = [folder / "nats" / member.name / file for file in (FILE, *_KEYS)]
    secrets |= {name: [folder / name] for name in ALONE}
    told = dict(line.split("=", 1) for line in (folder / "mesh.env").read_text().splitlines())
    told["WEFT_NATS_URL"] = ",".join(each.url for each in founding.members)
    authority = (folder / "trust" / certificates.AUTHORITY).read_text()
    return {
        "apiVersion": "v1",
        "kind": "List",
        "items": [
            *(_object("ConfigMap", name, data) for name, data in ((MESH, told), (AUTHORITY, {CA_FILE: authority}))),
            *(_secret(name, files) for name, files in secrets.items()),
        ],
    }


def _secret(name: str, files: list[Path]) -> dict[str, object]:
    content = {file.name: file.read_bytes() for file in files}
    data = {file: base64.b64encode(text.strip() if name in ALONE else text).decode() for file, text in content.items()}
    return _object("Secret", name, data) | {"type": "Opaque"}


def _object(kind: str, name: str, data: dict[str, str]) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "labels": LABELS}, "data": data}

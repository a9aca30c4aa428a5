"""What a node registers with."""

from collections.abc import Mapping
from typing import Any

from weft_worker_agent.outbound.mesh.certificate import NodeCertificate
from weft_worker_agent.outbound.mesh.identity import NodeIdentity


def registration(
    name: str,
    identity: NodeIdentity,
    certificate: NodeCertificate | None,
    *,
    host: str,
    http_port: int,
    labels: Mapping[str, str],
    replicas_per_model: int | None,
) -> dict[str, Any]:
    """The body, without the token. `host`, `http_port`: where its own server is reached; `replicas_per_model`: at most
    so many here, None: no bound."""
    body: dict[str, Any] = {
        "name": name,
        "public_key": identity.public_key,
        "addresses": {"host": host, "http_port": http_port},
        "labels": labels,
    }
    if replicas_per_model is not None:
        body["caps"] = {"replicas_per_model": replicas_per_model}
    if certificate is not None:
        body["certificate_key"] = certificate.public_key()
    return body

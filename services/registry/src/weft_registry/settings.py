"""The registry's settings."""

from pathlib import Path
from typing import Annotated, Self

from pydantic import ByteSize, Field, model_validator
from weft_contracts import disk
from weft_runtime.settings import ServiceSettings


class RegistrySettings(ServiceSettings):
    """Environment variables `WEFT_…`, besides those that every service has."""

    nats_store_size: Annotated[ByteSize, Field(ge=disk.SMALLEST_STORE, le=1 << 50)] | None = None
    """Of each server of the log, such as `20GiB`, where its disk isn't this machine's: streams' limits then fit it."""
    trust: Path | None = None
    """Folder of the mesh's trust; without it no credential can be made and no worker can connect."""
    worker_nats_url: str | None = None
    """Where workers reach NATS; none: where the registry does."""
    bootstrap_token_id: str | None = None
    bootstrap_token_hash: str | None = None
    """A registration token that approves, by its id and the SHA-256 (hex) of its secret."""
    bootstrap_token_keys: str | None = None
    """The public keys of the only nodes that may show that token, with commas between them; none: it serves whoever has
    it."""
    bootstrap_token_nodes: Annotated[int, Field(ge=0, le=100_000)] | None = None
    """So many nodes that token approves; who comes beyond them waits for an admin. None: all."""
    waiting_nodes: Annotated[int, Field(ge=1, le=100_000)] = 2000
    """Nodes that wait for approval at once, and registrations within a minute, in all. The gateways' is the same."""
    waiting_nodes_per_token: Annotated[int, Field(ge=1, le=100_000)] = 64
    """The same for each token that doesn't say another number."""
    waiting_hours: Annotated[float, Field(gt=0, le=8760)] = 24.0
    """How long a node waits for approval; then it is out, and may ask again."""
    unhealthy_after: Annotated[float, Field(gt=0, le=3600)] = 4.0
    """Seconds of silence until a node gets no new replica."""
    offline_after: Annotated[float, Field(gt=0, le=3600)] = 7.0
    """Seconds of silence until a node's replicas are replaced."""
    start_grace: Annotated[float, Field(ge=0, le=3600)] = 30.0
    """Seconds after the registry's start during which nobody's silence counts."""
    return_grace: Annotated[float, Field(ge=0, le=3600)] = 10.0
    """The same after a reconnect to NATS."""
    credential_hours: Annotated[float, Field(gt=0, le=8760)] = 24.0
    """How long a worker's credential lasts; it is made anew at half of that."""

    node_share: Annotated[float, Field(ge=0.1, le=1000)] = 1.0
    """Times the shares of connections, messages, bytes and facts, above which a node is cut off."""

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if self.offline_after <= self.unhealthy_after:
            raise ValueError("WEFT_OFFLINE_AFTER must be more than WEFT_UNHEALTHY_AFTER")
        if self.nats_store is not None and self.nats_store_size is not None:
            raise ValueError("WEFT_NATS_STORE and WEFT_NATS_STORE_SIZE: the log's room is looked at, or said; set one")
        if (self.bootstrap_token_id is None) != (self.bootstrap_token_hash is None):
            raise ValueError("WEFT_BOOTSTRAP_TOKEN_ID and WEFT_BOOTSTRAP_TOKEN_HASH belong together: set both or none")
        if self.bootstrap_token_keys is not None and self.bootstrap_token_id is None:
            raise ValueError("WEFT_BOOTSTRAP_TOKEN_KEYS belongs to WEFT_BOOTSTRAP_TOKEN_ID: set both or none")
        return self

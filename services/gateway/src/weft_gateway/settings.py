"""The gateway's settings, from `WEFT_…`."""

from pathlib import Path
from typing import Annotated

from pydantic import Field
from weft_contracts.api_key import parse_first_key
from weft_runtime.settings import BadSetting, ServiceSettings

from weft_gateway.domain.access import Policy, is_loopback


class GatewaySettings(ServiceSettings):
    """What this service takes beyond the shared settings."""

    http_port: Annotated[int, Field(ge=0, le=65535)] = 8080
    """The front door: API, health, metrics. 0: any free port."""
    http_certificate: Path | None = None
    http_key: Path | None = None
    """What people's browsers and clients are shown instead of the mesh's own certificate; both or none."""
    postgres_url: str | None = None
    """Where the tables for people are (libpq's form); none: lists answer 503."""
    require_keys: bool = False
    """Everybody needs a key, this machine too. So it is anyway where the gateway listens elsewhere than on loopback."""
    allow_anonymous: bool = False
    """Nobody needs a key: whoever can reach the port may do everything."""
    first_key: str | None = None
    """Of the first admin key, what `weft keys first` prints: its prefix and hash. It is recorded once."""
    loading_wait_s: Annotated[float, Field(ge=0, le=600)] = 60.0
    """How long a request waits for a model that loads."""
    loading_line: Annotated[int, Field(ge=0, le=100_000)] = 1024
    """Requests that wait for one model that loads at once."""
    busy_wait_s: Annotated[float, Field(ge=0, le=600)] = 10.0
    """How long a request waits while every replica is busy."""
    busy_queue: Annotated[int, Field(ge=0, le=100_000)] = 256
    """Requests that wait for one model's busy replicas at once."""
    resume_wait_s: Annotated[float, Field(ge=0, le=600)] = 10.0
    """How long a broken stream waits for another replica to go on with it."""
    stall_s: Annotated[float, Field(ge=10, le=86_400)] = 300.0
    """A running request without an output for so long is given up."""
    outcome_wait_s: Annotated[float, Field(gt=0, le=600)] = 15.0
    """How long an admin's POST waits for its outcome before it answers 504."""
    max_body_bytes: Annotated[int, Field(ge=1024, le=64 << 20)] = 8 << 20
    """Larger request bodies are refused with 413."""
    slow_client_bytes: Annotated[int, Field(ge=1024, le=64 << 20)] = 1 << 20
    """A client that leaves more than this unread of a stream is dropped."""
    finish_wait_s: Annotated[float, Field(ge=0, le=600)] = 8.0
    """How long running requests may take to finish when the gateway stops."""
    request_log: bool = True
    """One log line for each inference request."""

    def check(self) -> None:
        """Raises BadSetting for what can't be meant."""
        if (self.http_certificate is None) != (self.http_key is None):
            raise BadSetting("WEFT_HTTP_CERTIFICATE and WEFT_HTTP_KEY belong together: set both or none")
        if self.http_certificate is not None and self.tls_folder is None:
            raise BadSetting(
                "WEFT_HTTP_CERTIFICATE needs WEFT_TLS_FOLDER: workers are shown the mesh's own certificate"
            )
        if self.require_keys and self.allow_anonymous:
            raise BadSetting("WEFT_REQUIRE_KEYS and WEFT_ALLOW_ANONYMOUS contradict each other: set one of them")
        if self.first_key is not None:
            try:
                parse_first_key(self.first_key)
            except ValueError as error:
                raise BadSetting(f"WEFT_FIRST_KEY: {error}") from None

    @property
    def policy(self) -> Policy:
        """Who needs no key."""
        if self.allow_anonymous:
            return "anyone"
        return "keys" if self.require_keys or not is_loopback(self.http_host) else "local"

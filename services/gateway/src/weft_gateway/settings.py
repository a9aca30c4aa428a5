"""The gateway's settings, from `WEFT_…`."""

from typing import Annotated

from pydantic import Field
from weft_runtime.settings import ServiceSettings

from weft_gateway.domain.access import is_loopback


class GatewaySettings(ServiceSettings):
    """What this service takes beyond the shared settings."""

    http_port: Annotated[int, Field(ge=0, le=65535)] = 8080
    """The front door: API, health, metrics. 0: any free port."""
    postgres_url: str | None = None
    """Where the tables for people are (libpq's form); none: lists answer 503."""
    allow_anonymous: bool = False
    """Let anyone call who can reach the port. Without it the gateway serves this machine alone."""
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
        """Raises ValueError where nobody could be kept out."""
        if not is_loopback(self.http_host) and not self.allow_anonymous:
            raise ValueError(
                f"WEFT_HTTP_HOST={self.http_host} is not loopback, and there are no keys yet: anyone who reaches it"
                " could use the mesh. Use 127.0.0.1, or set WEFT_ALLOW_ANONYMOUS=1 if that is meant."
            )

"""Settings that every service shares: environment variables `WEFT_…`, with defaults and ranges."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class ServiceSettings(BaseSettings):
    """Where the log is, where the service listens, how it speaks of itself."""

    model_config = SettingsConfigDict(env_prefix="WEFT_", extra="ignore")

    nats_url: str = "nats://127.0.0.1:4222"
    """One server or several, separated by commas."""
    nats_credentials: Path | None = None
    """Credentials file (token and seed); none: a server without accounts."""
    http_host: str = "127.0.0.1"
    http_port: Annotated[int, Field(ge=0, le=65535)] = 0
    """Health, readiness and metrics; 0: any free port."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["auto", "json", "console"] = "auto"
    """auto: console on a terminal, JSON lines elsewhere."""
    otlp_endpoint: str | None = None
    """Where traces go by OTLP over HTTP; none: nowhere."""
    lifeline_fd: int | None = None
    """A pipe inherited from the launcher: when it closes, the service stops."""
    stop_timeout: Annotated[float, Field(gt=0, le=600)] = 10.0
    """Seconds that an orderly stop may take before it is cut short."""

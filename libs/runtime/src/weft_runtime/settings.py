"""Settings that every service shares: environment variables `WEFT_…`, with defaults and ranges."""

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

BAD_SETTINGS = 2
"""Exit status of a process whose settings are wrong: starting it again is in vain."""


HTTP_URL = r"^https?://[^/\s]+"


class BadSetting(ValueError):
    """A setting whose value can't be used, such as a file that isn't there. Its text is one sentence for people."""


class ProcessSettings(BaseSettings):
    """Where the log is, where the process listens, how it speaks of itself: of services and observers alike.

    Values out of their range end the process with status 2 and one sentence each on standard error.
    """

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
    lifeline_fd: int | None = None
    """A pipe inherited from the launcher: when it closes, the service stops."""
    stop_timeout: Annotated[float, Field(gt=0, le=600)] = 10.0
    """Seconds that an orderly stop may take before it is cut short."""

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            for sentence in faults(error):
                print(sentence, file=sys.stderr)
            raise SystemExit(BAD_SETTINGS) from None


class ServiceSettings(ProcessSettings):
    """What services share besides."""

    nats_store: Path | None = None
    """A folder on the disk to which the log's server writes, where that is this machine's: its room is looked at."""
    tls_folder: Path | None = None
    """Folder with `authority.pem`, `certificate.pem` and `key.pem`: the service speaks TLS. None: plain."""
    otlp_endpoint: Annotated[str | None, Field(pattern=HTTP_URL)] = None
    """Where traces go by OTLP over HTTP, such as `http://127.0.0.1:4318`; none: nowhere."""
    snapshot_every: Annotated[int, Field(ge=1, le=10_000_000)] = 10_000
    """Commits from one snapshot of a fold to the next: what a start folds at most takes a third of a second."""


def faults(error: ValidationError) -> list[str]:
    """One sentence for each wrong setting: where, and what would be right. What was given is left out: it may be
    a secret."""
    sentences: list[str] = []
    for fault in error.errors(include_url=False, include_context=False, include_input=False):
        where = "_".join(["WEFT", *(str(part).upper() for part in fault["loc"])])
        what = fault["msg"].removeprefix("Value error, ")
        sentences.append(f"{where}: {what[0].lower()}{what[1:]}" if fault["loc"] else f"settings: {what}")
    return sentences

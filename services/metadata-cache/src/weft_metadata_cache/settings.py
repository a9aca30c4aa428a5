"""The metadata-cache's settings."""

from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator
from weft_files.reach import Reach
from weft_runtime.settings import HTTP_URL, ServiceSettings
from weft_sources.environment import as_hosts


class MetadataCacheSettings(ServiceSettings):
    """Environment variables `WEFT_…`, besides those that every service has."""

    metadata_most_bytes: Annotated[int, Field(gt=0, le=1 << 30)] = 1 << 30
    """The largest metadata file that is fetched."""
    metadata_timeout: Annotated[float, Field(gt=0, le=3600)] = 60.0
    """Seconds that one try at a file may take, and a second more for each MiB of it."""
    state: Path | None = None
    """A folder of this service's own."""
    metadata_folder: Path | None = None
    """Where files lie until they are kept; room for four of the largest. Default: `metadata` in the state folder; where
    there is none, a temporary one."""
    hub: Annotated[str, Field(pattern=HTTP_URL)] | None = None
    """Where files of hub models are asked for that no node gives. Default: what `HF_ENDPOINT` says, else the public
    hub."""
    sources_allow: str = ""
    """Servers that may be asked though their address is private or they speak plain http: `host` or `host:port`, with
    commas between. The hub's own counts as named."""
    metadata_tries: Annotated[int, Field(ge=1, le=100)] = 5
    """Refusals by one node, for each time that its run becomes ready, after which it isn't asked again."""
    metadata_pause: Annotated[float, Field(gt=0, le=3600)] = 30.0
    """Seconds from a refusal to the next try at the same node; twice as many after each further one."""

    @property
    def transfer_folder(self) -> Path | None:
        """None: a temporary one."""
        return self.metadata_folder or (self.state / "metadata" if self.state is not None else None)

    @field_validator("sources_allow")
    @classmethod
    def _hosts(cls, value: str) -> str:
        Reach(as_hosts(value))
        return value

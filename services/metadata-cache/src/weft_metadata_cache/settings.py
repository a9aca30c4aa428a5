"""The metadata-cache's settings."""

from typing import Annotated

from pydantic import Field
from weft_runtime.settings import ServiceSettings


class MetadataCacheSettings(ServiceSettings):
    """Environment variables `WEFT_…`, besides those that every service has."""

    metadata_most_bytes: Annotated[int, Field(gt=0, le=1 << 30)] = 64 << 20
    """The largest metadata file that is fetched."""
    metadata_timeout: Annotated[float, Field(gt=0, le=3600)] = 60.0
    """Seconds that one try at a file may take."""
    metadata_tries: Annotated[int, Field(ge=1, le=100)] = 5
    """Refusals by one node, for each time that its run becomes ready, after which it isn't asked again."""
    metadata_pause: Annotated[float, Field(gt=0, le=3600)] = 30.0
    """Seconds from a refusal to the next try at the same node; twice as many after each further one."""

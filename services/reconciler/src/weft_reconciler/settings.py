"""The reconciler's settings."""

from typing import Annotated

from pydantic import Field
from weft_runtime.settings import ServiceSettings


class ReconcilerSettings(ServiceSettings):
    """Environment variables `WEFT_…`, besides those that every service has."""

    deploy_wait: Annotated[float, Field(gt=0, le=600)] = 10.0
    """Seconds that a deploy waits for a healthy node, and for what nodes find on their disks."""
    lost_grace: Annotated[float, Field(ge=0, le=3600)] = 30.0
    """Seconds after the reconciler's start in which a node that was offline before may still return."""
    failure_memory: Annotated[float, Field(gt=0, le=86400)] = 3600.0
    """Seconds for which a failure on a node counts against a model there."""

"""How a node asks sources: which hub, with which secrets, where offline files lie, and which hosts it may ask."""

from dataclasses import dataclass, field
from pathlib import Path

from weft_files.reach import Reach


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """What a node's operator says of sources. Secrets don't show in its repr."""

    hub: str = "https://huggingface.co"
    """The hub's URL. Whoever makes the settings names its host to `reach`, if it is in the own network."""
    hub_token: str = field(default="", repr=False)
    offline: bool = False
    """Ask no hub: what isn't in `hub_folder` is not there."""
    hub_folder: Path | None = None
    """A cache folder of huggingface_hub, which is read and never written."""
    web_token: str = field(default="", repr=False)
    """A bearer token for the address that a source names; empty: it is asked without one."""
    s3_access_key: str = field(default="", repr=False)
    """Empty: buckets are asked without a name."""
    s3_secret_key: str = field(default="", repr=False)
    s3_session_token: str = field(default="", repr=False)
    reach: Reach = field(default_factory=Reach)
    timeout_s: float = 20.0
    """For one request, from its first byte to the last one of its answer."""

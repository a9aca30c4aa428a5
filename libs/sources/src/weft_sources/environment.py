"""How sources are asked by a process: its own settings, over what huggingface_hub and AWS's tools read."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from weft_files.reach import Reach

from weft_sources.settings import SourceSettings

PUBLIC_HUB: Final = "https://huggingface.co"
_YES: Final = ("1", "ON", "YES", "TRUE")
"""What huggingface_hub takes for a yes."""


def source_settings(
    *,
    hub: str = "",
    hub_token: str = "",
    offline: bool | None = None,
    hub_folder: Path | None = None,
    s3_access_key: str = "",
    s3_secret_key: str = "",
    s3_session_token: str = "",
    allow: Sequence[str] = (),
    environ: Mapping[str, str] = os.environ,
) -> SourceSettings:
    """What is empty or None is as the variables of `environ` say. A bucket's keys come from one place: where the
    settings name an access key, no variable adds to it.

    Raises ValueError for an `allow` that names no server, or a hub that is none.
    """
    if not s3_access_key:
        s3_access_key = environ.get("AWS_ACCESS_KEY_ID", "")
        s3_secret_key = s3_secret_key or environ.get("AWS_SECRET_ACCESS_KEY", "")
        s3_session_token = s3_session_token or environ.get("AWS_SESSION_TOKEN", "")
    hub = (hub or environ.get("HF_ENDPOINT", "") or PUBLIC_HUB).rstrip("/")
    return SourceSettings(
        hub=hub,
        hub_token=hub_token or environ.get("HF_TOKEN", ""),
        offline=environ.get("HF_HUB_OFFLINE", "").upper() in _YES if offline is None else offline,
        hub_folder=hub_folder or _hub_folder(environ),
        s3_access_key=s3_access_key,
        s3_secret_key=s3_secret_key,
        s3_session_token=s3_session_token,
        reach=Reach((*allow, urlsplit(hub).netloc.rpartition("@")[2])),
    )


def as_hosts(text: str) -> tuple[str, ...]:
    """The entries of a setting that holds servers with commas between."""
    return tuple(each for part in text.split(",") if (each := part.strip()))


def _hub_folder(environ: Mapping[str, str]) -> Path:
    """Where huggingface_hub keeps what it fetches."""
    if named := environ.get("HF_HUB_CACHE"):
        return Path(named).expanduser()
    home = environ.get("HF_HOME") or Path(environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    return Path(home, "hub").expanduser()

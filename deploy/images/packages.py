"""Where a build gets its packages: third parties' wheels of /wheels where there are any in it, else an index.

Settings of an index (`UV_DEFAULT_INDEX=…`, `PIP_INDEX_URL=…`, a line each) may lie in /run/secrets/index: a secret of
the build, which is in no layer.
"""

import os
from pathlib import Path

WHEELS = Path("/wheels")
INDEX = Path("/run/secrets/index")
CACHE = "/root/.cache/uv"
"""It is mounted for the build, and in no layer."""


def environment() -> dict[str, str]:
    """The environment of uv."""
    lines = INDEX.read_text().splitlines() if INDEX.exists() else []
    told = dict(line.strip().split("=", 1) for line in lines if "=" in line)
    fixed = {"UV_PYTHON_DOWNLOADS": "never", "UV_NO_CONFIG": "1", "UV_LINK_MODE": "copy", "UV_SYSTEM_CERTS": "1"}
    return os.environ | fixed | {"UV_CACHE_DIR": CACHE} | told


def flags() -> list[str]:
    """What uv is told of it."""
    return ["--no-index", "--find-links", str(WHEELS)] if WHEELS.is_dir() and any(WHEELS.iterdir()) else []

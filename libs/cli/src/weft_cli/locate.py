"""Which gateway a command speaks to: the one it names, else that of the state's mesh, else the usual address.

And with which key: `WEFT_API_KEY`, else the state's own, which goes to that state's mesh and nowhere else.
"""

import os
from contextlib import suppress
from pathlib import Path

from weft_client.failure import Exit, Failure
from weft_client.gateway import Gateway
from weft_contracts import certificates
from weft_embedded import run_file
from weft_embedded.state import State, default_folder

DEFAULT_URL = "http://127.0.0.1:8080"


def state(folder: Path | None) -> State:
    """The state that a command means."""
    return State((folder or default_folder()).expanduser().absolute())


def gateway(folder: Path | None, url: str | None, *, timeout_s: float = 60.0) -> Gateway:
    """The gateway that a command means. Raises Failure if a state is named on which no mesh runs: at the usual address
    there may be another mesh, which nobody spoke of."""
    record = run_file.read(state(folder))
    if url is None:
        if record is not None and record.alive():
            url = record.url
        elif folder is None:
            url = DEFAULT_URL
        else:
            raise Failure(
                f"no mesh runs on {folder}: start one (weft up --state {folder}), or name a gateway: --url URL",
                Exit.NOT_RUNNING,
            )
    authority = _authority(folder, url, record)
    return Gateway(url, key=key_for(folder, url), timeout_s=timeout_s, authority=authority)


def _authority(folder: Path | None, url: str, record: run_file.RunFile | None) -> Path | None:
    """The file of the authority by which the state's own mesh is known over TLS; None for any other gateway."""
    if record is None or not record.alive() or Gateway(url).url != record.url or not url.startswith("https://"):
        return None
    return state(folder).trust / certificates.AUTHORITY


def key_for(folder: Path | None, url: str | None) -> str | None:
    """The key to show at an address; None where there is none for it."""
    if named := os.environ.get("WEFT_API_KEY"):
        return named
    record = run_file.read(state(folder))
    if url is None or record is None or not record.alive() or Gateway(url).url != record.url:
        return None
    with suppress(OSError):
        return state(folder).admin_key.read_text().strip() or None
    return None

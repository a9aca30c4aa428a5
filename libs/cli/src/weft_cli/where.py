"""Which gateway a command speaks to: the one it names, else that of the state's mesh, else the usual address."""

from pathlib import Path

from weft_cli.client import Gateway
from weft_cli.embedded import run_file
from weft_cli.embedded.state import State, default_folder

DEFAULT_URL = "http://127.0.0.1:8080"


def state(folder: Path | None) -> State:
    """The state that a command means."""
    return State((folder or default_folder()).expanduser().absolute())


def gateway(folder: Path | None, url: str | None, *, timeout_s: float = 60.0) -> Gateway:
    """The gateway that a command means."""
    if url is None:
        record = run_file.read(state(folder))
        url = record.url if record is not None and record.alive() else DEFAULT_URL
    return Gateway(url, timeout_s=timeout_s)

"""Which gateway a command speaks to: the one it names, else that of the state's mesh, else the usual address."""

from pathlib import Path

from weft_cli.client import Gateway
from weft_cli.embedded import run_file
from weft_cli.embedded.state import State, default_folder
from weft_cli.failure import Exit, Failure

DEFAULT_URL = "http://127.0.0.1:8080"


def state(folder: Path | None) -> State:
    """The state that a command means."""
    return State((folder or default_folder()).expanduser().absolute())


def gateway(folder: Path | None, url: str | None, *, timeout_s: float = 60.0) -> Gateway:
    """The gateway that a command means. Raises Failure if a state is named on which no mesh runs: at the usual address
    there may be another mesh, which nobody spoke of."""
    if url is None:
        record = run_file.read(state(folder))
        if record is not None and record.alive():
            url = record.url
        elif folder is None:
            url = DEFAULT_URL
        else:
            raise Failure(
                f"no mesh runs on {folder}: start one (weft up --state {folder}), or name a gateway: --url URL",
                Exit.NOT_RUNNING,
            )
    return Gateway(url, timeout_s=timeout_s)

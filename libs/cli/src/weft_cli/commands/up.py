"""`weft up` and `weft down`."""

import os
import sys
from dataclasses import astuple, dataclass
from pathlib import Path

from weft_cli import where
from weft_cli.embedded import detach as detaching
from weft_cli.embedded import down as ending
from weft_cli.embedded.launcher import Options, command
from weft_cli.failure import Exit, Failure


@dataclass(frozen=True, slots=True)
class Reach:
    """Where the mesh listens; None: as last time."""

    listen: str | None = None
    nats_port: int | None = None
    certificate: Path | None = None
    key: Path | None = None


def run(
    folder: Path | None,
    *,
    port: int | None,
    workers: int | None,
    detach: bool,
    deploy: bool,
    reach: Reach,
) -> None:
    """Bring a mesh up, in the background or as this process, which becomes the launcher."""
    options = Options(where.state(folder), port, workers, deploy, *astuple(reach))
    if detach:
        detaching.run(options, print)
    else:
        os.execv(sys.executable, command(options))


def down(folder: Path | None) -> None:
    """End the mesh of a state."""
    state = where.state(folder)
    try:
        ending.run(state)
    except Failure as e:
        if e.exit is Exit.NOT_RUNNING:
            print(e)
            raise SystemExit(int(e.exit)) from None
        raise
    print(f"the mesh on {state.folder} has ended")

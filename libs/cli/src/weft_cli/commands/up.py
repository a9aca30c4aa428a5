"""`weft up` and `weft down`."""

import os
import sys
from dataclasses import astuple, dataclass, replace
from pathlib import Path

from weft_client.failure import Exit, Failure
from weft_embedded import detach as detaching
from weft_embedded import down as ending
from weft_embedded import run_file
from weft_embedded.launcher import Options, command

from weft_cli import locate
from weft_cli.outcome import show, tell


@dataclass(frozen=True, slots=True)
class Reach:
    """Where the mesh listens; None: as last time."""

    listen: str | None = None
    nats_port: int | None = None
    certificate: Path | None = None
    key: Path | None = None
    bundle: Path | None = None


def run(
    folder: Path | None,
    *,
    port: int | None,
    workers: int | None,
    detach: bool,
    deploy: bool,
    reach: Reach,
    as_json: bool,
) -> None:
    """Bring a mesh up, in the background or as this process, which becomes the launcher."""
    if as_json and not detach:
        raise Failure("--json belongs to --detach: weft up --detach --json", Exit.USAGE)
    if reach.bundle is not None:
        reach = replace(reach, bundle=reach.bundle.expanduser().absolute())
    options = Options(locate.state(folder), port, workers, deploy, *astuple(reach))
    if detach:
        key: list[str] = []
        detaching.run(options, (lambda _: None) if as_json else print, key.append if as_json else print)
        if as_json:
            record = run_file.read(options.state)
            show(
                {
                    "url": record.url if record is not None else None,
                    "state": str(options.state.folder),
                    "launcher": record.pid if record is not None else None,
                    "first_key": key[0].strip() if key else None,
                }
            )
    else:
        os.execv(sys.executable, command(options))


def down(folder: Path | None, *, as_json: bool) -> None:
    """End the mesh of a state."""
    state = locate.state(folder)
    ended = {"state": str(state.folder), "running": False}
    try:
        forced = ending.run(state)
    except Failure as e:
        if e.exit is Exit.NOT_RUNNING:
            tell(str(e), ended, as_json=as_json)
            raise SystemExit(int(e.exit)) from None
        raise
    said = f"the mesh on {state.folder} has ended"
    tell(said if forced is None else f"{said}\n{forced}", ended | {"forced": forced}, as_json=as_json)

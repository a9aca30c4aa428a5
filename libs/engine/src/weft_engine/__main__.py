"""`python -m weft_engine --launch FILE [--lifeline FD]`: one process, one replica."""

import argparse
import asyncio
import contextlib
import importlib
import logging
import os
import sys
from collections.abc import Sequence
from typing import Final, NoReturn

from weft_contracts.secrets import secrets_in

from weft_engine import numa, secrets
from weft_engine.announcer import Announcer, own_stdout
from weft_engine.exit_codes import OTHER_FAILURE, PERMANENT_FAILURE
from weft_engine.installed import profile_of
from weft_engine.json_logs import log_to_stderr
from weft_engine.launch import BadLaunch, ClaimedDevice, Launch
from weft_engine.visible_devices import NotAddressable, visibility

log = logging.getLogger("weft.engine")

BEFORE_GRPC: Final = frozenset(("xllamacpp",))
"""Engines' native modules that are loaded before gRPC's. Built with a compiler whose C++ runtime is linked into what it
makes, such a one uses that alone if it comes first; after another module that brought the system's it takes half of
each, and the process ends with a segmentation fault (seen with CUDA 13.0 and GCC's runtime as an archive)."""


def main() -> NoReturn:
    """Run the host and leave with its exit code."""
    parser = argparse.ArgumentParser(prog="weft_engine", description="One engine process for one replica.")
    parser.add_argument("--launch", required=True, metavar="FILE", help='JSON file, "-" for a line of stdin')
    parser.add_argument("--lifeline", type=int, metavar="FD", help="the host ends when this pipe closes")
    parser.add_argument("--secrets", type=int, metavar="FD", help="a pipe with the values that engine_args name")
    arguments = parser.parse_args()
    announcer = Announcer(own_stdout())
    try:
        launch = Launch.read(arguments.launch, sys.stdin)
    except BadLaunch as error:
        announcer.failed(str(error), permanent=True)
        leave(PERMANENT_FAILURE)
    log_to_stderr(
        launch.log_level,
        replica=launch.replica,
        incarnation=launch.incarnation,
        correlation_id=launch.correlation_id,
    )
    if launch.numa is not None:
        numa.bind(launch.numa)
    if arguments.secrets is not None:
        secrets.receive(arguments.secrets)
        try:
            secrets.wait_for(secrets_in(launch.engine_args))
        except secrets.SecretMissing as missing:
            announcer.failed(str(missing), permanent=False)
            leave(OTHER_FAILURE)
    try:
        keep_to(launch.devices)
    except NotAddressable as error:
        announcer.failed(str(error), permanent=True)
        leave(PERMANENT_FAILURE)
    load_first(launch.engine)
    from weft_engine.host import run_host  # brings gRPC

    try:
        code = asyncio.run(run_host(launch, arguments.lifeline, announcer))
    except Exception as error:
        announcer.failed(f"the engine host broke: {error}", permanent=False)
        code = OTHER_FAILURE
    leave(code)


def keep_to(devices: Sequence[ClaimedDevice]) -> None:
    """Let what is loaded from now on see the claimed devices alone, and say so. Raises NotAddressable."""
    if devices:
        environment = visibility(devices)
        os.environ.update(environment)
        claimed = [device.model_dump(exclude_defaults=True) for device in devices]
        log.info("claims", extra={"devices": claimed, "environment": environment})


def load_first(engine: str) -> None:
    """Import what must come before gRPC. That it isn't installed, or is broken, is said by who loads the model."""
    with contextlib.suppress(Exception):
        if (package := profile_of(engine).install.package) in BEFORE_GRPC:
            importlib.import_module(package)


def leave(code: int) -> NoReturn:
    """Leave now: threads inside an engine's native code would keep the interpreter from ending."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue
    os._exit(code)


if __name__ == "__main__":
    main()

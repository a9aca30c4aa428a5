"""The first run of an environment: what was installed is what the recipe says, and the engine host can be imported."""

import asyncio
import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError
from weft_contracts.engines import BUILTIN, EngineProfile

from weft_worker_agent.domain.install_faults import InstallFault
from weft_worker_agent.domain.install_plan import InstallPlan

_BOUND_S = 300.0
_ASK = "import weft_engine.host, importlib.metadata as m, sys; print(m.version(sys.argv[1]))"


class InstallFailed(Exception):
    """An engine could not be installed."""

    def __init__(self, fault: InstallFault) -> None:
        super().__init__(fault.reason)
        self.fault = fault


async def first_run(wanted: InstallPlan, python: Path, code: Mapping[str, str]) -> EngineProfile | None:
    """The engine's profile, where Weft has none. `code`: the variables that bring the host's code.

    Raises InstallFailed, OSError.
    """
    engine, variant = wanted.engine, wanted.variant
    builtin = engine in BUILTIN
    asked = ["-c", _ASK, variant.package] if builtin else ["-m", "weft_engine.installed", engine]
    process = await asyncio.create_subprocess_exec(
        str(python),
        *asked,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": os.environ.get("PATH", os.defpath), **code},
    )
    try:
        async with asyncio.timeout(_BOUND_S):
            out, err = await process.communicate()
    except TimeoutError:
        raise InstallFailed(_unusable(wanted, f"it does not answer within {_BOUND_S:g} s")) from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
    if process.returncode:
        last = (err.decode(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
        raise InstallFailed(_unusable(wanted, last))
    try:
        body = None if builtin else json.loads(out)
        version = out.decode().strip() if body is None else str(body["version"])
        profile = None if body is None else EngineProfile.model_validate(body["profile"])
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise InstallFailed(_unusable(wanted, f"it tells no profile: {error}")) from None
    if version.partition("+")[0] != variant.version.partition("+")[0]:
        raise InstallFailed(
            replace(_unusable(wanted, f"its package {variant.package} has the version {version}"), permanent=True)
        )
    if not version.partition("+")[2].startswith(variant.build):
        words = f"{variant.package} {version} is no {variant.build} build: name an index that has one before others"
        raise InstallFailed(_unusable(wanted, words))
    return profile


def _unusable(wanted: InstallPlan, words: str) -> InstallFault:
    return InstallFault(
        f"{wanted.engine} {wanted.variant.version} was installed and can't be used: {words}", local=True
    )

"""Whether this machine has what a recipe needs of it, and what no installer of packages can bring."""

import ctypes
import os
import sys

from weft_contracts.backends import BackendVariant, SystemNeed

from weft_worker_agent.domain.install_faults import InstallFault


def missing_need(variant: BackendVariant) -> InstallFault | None:
    """The first thing that is not there, in the recipe's own sentence."""
    return next((InstallFault(need.say, local=True) for need in variant.needs if not _is_there(need)), None)


def _is_there(need: SystemNeed) -> bool:
    if need.kind == "device":
        return os.access(need.name, os.R_OK | os.W_OK)
    if sys.platform != "linux":
        return True
    try:
        ctypes.CDLL(need.name)
    except OSError:
        return False
    return True

"""From which release an agent is started, where each lies in a folder of its own and engines are to outlive an upgrade:

PREFIX/versions/RELEASE/venv     what a bundle or a mesh's line installed
PREFIX/versions/current          a link to the newest
"""

import os
import sys
from collections.abc import Sequence

VERSIONS, CURRENT = "versions", "current"


def newest(command: Sequence[str], *, python: str = sys.executable, prefix: str = sys.prefix) -> tuple[str, ...]:
    """A command, by the Python of the release that is installed by now where it begins with this one's. The link is
    followed here: what runs must not come to be of another release while it does."""
    versions = os.path.dirname(os.path.dirname(prefix))
    link = os.path.join(versions, CURRENT)
    if command[0] != python or os.path.basename(versions) != VERSIONS or not os.path.islink(link):
        return tuple(command)
    found = os.path.realpath(link)
    if os.path.dirname(found) != os.path.realpath(versions):
        return tuple(command)
    own = os.path.join(found, "venv", "bin", "python")
    return (own, *command[1:]) if os.access(own, os.X_OK) else tuple(command)

"""What lies in the layers of images and containers, as the store has them: each once, however many share it."""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from weft_testing.containers.podman import Podman

SHAPES = (
    r"weft-[0-9a-f]{8}-[A-Za-z0-9_-]{43}",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----(\\n|[[:space:]])+[A-Za-z0-9+/]{40}",
    r"(^|[^A-Z2-7])S[UAONCX][A-Z2-7]{56}([^A-Z2-7]|$)",
    r"whsec_[A-Za-z0-9+/]{32}",
)
"""Of secrets: an API key, a private key with something in it, a seed of NATS's, a webhook's secret."""
_BOUND_S = 300.0


def layers(podman: Podman, images: Iterable[str] = (), containers: Iterable[str] = ()) -> set[Path]:
    """The folders of all layers, those that the containers write to among them."""
    found = set[Path]()
    for kind, names in (("image", images), ("container", containers)):
        for name in names:
            stored: dict[str, str] = podman.inspected(name, kind)["GraphDriver"]["Data"]
            found |= {
                Path(each) for side in ("UpperDir", "LowerDir") for each in stored.get(side, "").split(":") if each
            }
    return found


def files_with(folders: Iterable[Path], *, shapes: Iterable[str] = (), texts: Iterable[str] = ()) -> list[str]:
    """The files that hold one of these; a shape may go over lines. Raises AssertionError where grep failed."""
    where = [str(each) for each in sorted(folders)]
    assert where, "there is nothing to look in"
    found = set[str]()
    for how, sought in (("-E", "\n".join(shapes)), ("-F", "\n".join(texts))):
        if not sought:
            continue
        # what is sought may be secret: no command line has it
        argv = [
            "grep",
            "--recursive",
            "--files-with-matches",
            "--text",
            "--null-data",
            "--devices=skip",
            how,
            "-f",
            "-",
        ]
        done = subprocess.run(
            [*argv, *where],
            env=os.environ | {"LC_ALL": "C"},
            input=sought,
            capture_output=True,
            text=True,
            timeout=_BOUND_S,
            check=False,
        )
        assert done.returncode in (0, 1), done.stderr
        found |= set(done.stdout.splitlines())
    return sorted(found)

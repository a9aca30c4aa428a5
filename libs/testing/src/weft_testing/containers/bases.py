"""What the public images stand on, made of Debian's packages by mmdebstrap: no registry of images is asked.

Once on a machine: an imported tar is kept in the store under a name that says what is in it.
"""

import hashlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from weft_testing.containers.podman import Podman

SUITE = "bookworm"
PYTHON = ("python3", "python3-venv", "ca-certificates", "libgomp1")
"""Of Weft's own images."""
SERVERS = ("postgresql-15", "busybox")
"""Of those that stand for NATS's and Postgres's: busybox has wget, as Alpine's image does."""
_LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*")
_BOUND_S = 600.0


def base(podman: Podman, packages: tuple[str, ...]) -> str:
    """The image with these packages."""
    digest = hashlib.sha256(" ".join((SUITE, *packages, *_LEFT_OUT)).encode()).hexdigest()[:12]
    name = f"localhost/weft-base:{digest}"
    if podman.has_image(name):
        return name
    tar = podman.folder / f"{digest}.tar"
    options = [f"--dpkgopt=path-exclude={each}" for each in _LEFT_OUT]
    podman.call(
        ["mmdebstrap", "--quiet", "--variant=minbase", *options, f"--include={','.join(packages)}", SUITE, tar],
        bound_s=_BOUND_S,
    )
    podman.run("import", "--quiet", tar, name, bound_s=_BOUND_S)
    tar.unlink()
    return name


def wheels(podman: Podman, root: Path) -> Path:
    """Third parties' packages as a build without an index takes them: what the locks name, by hash."""
    locks = [root / name for name in ("requirements.lock", "requirements-tool.lock")]
    constraints = root / "deploy/images/build-constraints.txt"
    digest = hashlib.sha256(b"".join(each.read_bytes() for each in (*locks, constraints))).hexdigest()[:12]
    folder = podman.folder / f"wheels-{digest}"
    if (folder / "whole").exists():
        return folder
    pip = root / ".weft/tool/bin/python"
    python = str(pip if pip.exists() else sys.executable)
    fetch = [python, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes"]
    fetch += ["--only-binary", ":all:", "--no-binary", "nkeys", "--dest", str(folder)]
    # pip reads it as it reads any other: settings of the index are the machine's.
    asked = [part for each in (*locks, constraints) for part in ("-r", str(each))]
    done = subprocess.run([*fetch, *asked], capture_output=True, text=True, timeout=_BOUND_S, check=False)
    assert done.returncode == 0, f"{' '.join(fetch)}\n{done.stderr[-2000:]}"
    (folder / "whole").touch()
    return folder


def all_of_them(podman: Podman, root: Path) -> tuple[str, str, Path]:
    """Base of ours, base of the servers, wheels: what isn't there is made side by side."""
    with ThreadPoolExecutor(3) as pool:
        ours, servers = (pool.submit(base, podman, each) for each in (PYTHON, SERVERS))
        fetched = pool.submit(wheels, podman, root)
        return ours.result(), servers.result(), fetched.result()

"""An engine's own environment, without a virtual environment: an interpreter that finds the engine's package."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any


def engine_environment(folder: Path, package: Path, engine: str) -> Path:
    """Make `folder/backends/<engine>/bin/python` and return `folder/backends`, as workers take it (WEFT_BACKENDS).

    `package` is a folder with the engine's package, whose module `profile` holds `PROFILE`; it is installed as 1.0.
    """
    site, name = folder / "site", package.name
    shutil.copytree(package, site / name, ignore=shutil.ignore_patterns("__pycache__"))
    about = site / f"{name}-1.0.dist-info"
    about.mkdir()
    distribution = name.replace("_", "-")
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[weft.engines]\n{engine} = {name}.profile:PROFILE\n")
    return interpreter(folder, site, engine)


def interpreter(folder: Path, site: Path, engine: str) -> Path:
    """Make `folder/backends/<engine>/bin/python` that finds what is installed in `site`; `folder/backends`."""
    python = folder / "backends" / engine / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f"""#!/bin/sh\nPYTHONPATH={site}${{PYTHONPATH:+:$PYTHONPATH}} exec {sys.executable} "$@"\n""")
    python.chmod(0o755)
    return folder / "backends"


def profile_in(environment: Path, engine: str) -> dict[str, Any]:
    """What an admin tells a mesh: the engine's profile as its environment prints it."""
    python = environment / engine / "bin" / "python"
    said = subprocess.run([python, "-m", "weft_engine.installed", engine], capture_output=True, check=True, timeout=60)
    return json.loads(said.stdout)["profile"]

"""The example's engines, installed for a worker and told to a mesh as its page says."""

import subprocess
from pathlib import Path

import uv
from weft_testing.engine_environment import interpreter
from weft_testing.story import MeshUnderTest

EXAMPLE = Path(__file__).parents[2] / "libs" / "engine" / "examples" / "own_engines"
ENGINES = ("printer", "letters", "overlap")


def installed(folder: Path) -> Path:
    """An environment for each engine of the example, as a worker takes them."""
    site = folder / "site"
    install = [uv.find_uv_bin(), "pip", "install", "--offline", "--no-deps", "--target", str(site), str(EXAMPLE)]
    done = subprocess.run(install, capture_output=True, text=True, timeout=120, check=False)
    assert 0 == done.returncode, done.stderr
    for engine in ENGINES:
        interpreter(folder, site, engine)
    return folder / "backends"


def tell(mesh: MeshUnderTest, folder: Path, engine: str) -> None:
    """As the example's page says."""
    file = folder / f"{engine}.json"
    python = folder / "backends" / engine / "bin" / "python"
    asked = subprocess.run([python, "-m", "weft_engine.installed", engine], capture_output=True, check=True, timeout=60)
    file.write_bytes(asked.stdout)
    told = mesh.weft("engines", "add", str(file))
    assert 0 == told.returncode, told.stderr

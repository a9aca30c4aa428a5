"""What this machine has to build an engine with, and the variables under which a build runs."""

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, get_args

from weft_contracts.backends import TOOLS, BackendVariant, BuildTool, SourceBuild, environment_of

from weft_worker_agent.domain.install_faults import InstallFault
from weft_worker_agent.outbound.supervisor.environment import TOOLCHAINS, chosen

_PROGRAMS: Final[Mapping[str, tuple[str, ...]]] = {
    "c++": ("c++", "g++", "clang++"),
    "cmake": ("cmake",),
    "make": ("make", "gmake"),
    "glslc": ("glslc",),
    "nvcc": ("nvcc",),
    "hipcc": ("hipcc",),
}
_HEADERS: Final[Mapping[str, tuple[str, bytes]]] = {
    "vulkan": ("vulkan/vulkan_core.h", b"#define VK_EXT_layer_settings"),
    "spirv-headers": ("spirv/unified1/spirv.hpp", b""),
}
"""A header, and what one that is new enough says."""
_MOST_HEADER = 8 << 20
_NICE = "10"


def tools_there(environ: Mapping[str, str] = os.environ) -> tuple[BuildTool, ...]:
    """What there is of what recipes may ask for: looks at paths, takes some milliseconds."""
    path = _path(environ)
    return tuple(tool for tool in get_args(BuildTool) if _is_there(tool, path, environ))


def missing_tool(variant: BackendVariant, environ: Mapping[str, str] = os.environ) -> InstallFault | None:
    """What this machine lacks to build the variant, with what to install; None: nothing, or nothing is built."""
    if variant.source is None or not (lacking := variant.source.lacks(tools_there(environ))):
        return None
    words = " and ".join(TOOLS[tool] for tool in lacking)
    return InstallFault(f"{variant.package} {variant.version} is built here, which needs {words}", local=True)


def build_environment(source: SourceBuild, jobs: int, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What a build gets beside what the installer gets. `jobs`: compilers that run at once."""
    said = chosen(TOOLCHAINS, environ)
    if cuda := _cuda(environ):
        said.setdefault("CUDA_PATH", cuda)
    at_once = {"CMAKE_BUILD_PARALLEL_LEVEL": str(jobs), "MAX_JOBS": str(jobs), "NPROC": str(jobs)}
    return {**said, "PATH": _path(environ), **at_once, **environment_of(source)}


def beside_others() -> list[str]:
    """How a command is begun that leaves the processors to what serves here."""
    nice = shutil.which("nice")
    return [nice, "-n", _NICE] if nice is not None else []


def _is_there(tool: BuildTool, path: str, environ: Mapping[str, str]) -> bool:
    if tool in _PROGRAMS:
        return any(shutil.which(name, path=path) for name in _PROGRAMS[tool])
    name, says = _HEADERS[tool]
    return any(_says(folder / name, says) for folder in _include_folders(environ))


def _says(header: Path, words: bytes) -> bool:
    """Whether the first of these headers, the one that a compiler takes, says so."""
    try:
        with header.open("rb") as file:
            return words in file.read(_MOST_HEADER)
    except OSError:
        return False


def _include_folders(environ: Mapping[str, str]) -> Iterator[Path]:
    if sdk := environ.get("VULKAN_SDK"):
        yield Path(sdk) / "include"
    yield from (Path("/usr/local/include"), Path("/usr/include"))


def _path(environ: Mapping[str, str]) -> str:
    """Where programs are looked for: toolkits often lie outside of PATH."""
    own = [f"{environ[name]}/bin" for name in TOOLCHAINS if environ.get(name)]
    return os.pathsep.join((environ.get("PATH", os.defpath), *own, "/usr/local/cuda/bin", "/opt/rocm/bin"))


def _cuda(environ: Mapping[str, str]) -> str:
    """The CUDA toolkit's folder, known by its headers: nvcc may be a link or a script elsewhere. Empty: not known."""
    nvcc = shutil.which("nvcc", path=_path(environ))
    folders = [Path("/usr/local/cuda"), *([Path(nvcc).resolve().parent.parent] if nvcc is not None else [])]
    return next((str(each) for each in folders if (each / "include" / "cuda_runtime.h").is_file()), "")

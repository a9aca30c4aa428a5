"""How a package is built on a node where no index has it built for the devices: by words of closed lists alone.

A build runs the package's own code. So what is built, and what builds it, is locked by hashes; and what a recipe may
say to it is which of these options are on or off, nothing else.
"""

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, Final, Literal

from pydantic import Field

from weft_contracts.backends.vocabulary import Hash, Requirement, Switch
from weft_contracts.facts.fact import Value

CMakeOption = Literal[
    "GGML_CUDA",
    "GGML_HIP",
    "GGML_METAL",
    "GGML_NATIVE",
    "GGML_VULKAN",
    "LLAMA_BUILD_BORINGSSL",
    "LLAMA_LLGUIDANCE",
    "LLAMA_USE_PREBUILT_UI",
]
"""Options of llama.cpp's build. None names a program, a folder or an address."""
_FETCHING: Final = ("LLAMA_BUILD_BORINGSSL", "LLAMA_LLGUIDANCE", "LLAMA_USE_PREBUILT_UI")
"""They fetch what no hash locks, so a recipe may only switch them off."""
BuildTool = Literal["c++", "cmake", "make", "glslc", "vulkan", "spirv-headers", "nvcc", "hipcc"]
"""What a build finds on the machine: programs, and headers of libraries."""
TOOLS: Final[Mapping[BuildTool, str]] = MappingProxyType(
    {
        "c++": "a C++ compiler (Debian and Ubuntu have it as g++; on a Mac: xcode-select --install)",
        "cmake": "cmake, 3.19 or newer",
        "make": "make",
        "glslc": "glslc, which compiles Vulkan's shaders (Debian and Ubuntu have it as glslc)",
        "vulkan": "headers of Vulkan that know VK_EXT_layer_settings (Debian 13 and later have "
        "them as libvulkan-dev; elsewhere Vulkan's SDK, with VULKAN_SDK set for the worker)",
        "spirv-headers": "the headers of SPIR-V (Debian and Ubuntu have them as spirv-headers)",
        "nvcc": "nvcc of NVIDIA's CUDA toolkit, in PATH, in CUDA_PATH or in /usr/local/cuda",
        "hipcc": "hipcc of AMD's ROCm, in PATH, in ROCM_PATH or in /opt/rocm",
    }
)
"""What to install, for people, after `needs`."""


class SourceBuild(Value, frozen=True):
    """What a package's build is told, and what it takes."""

    cmake: dict[CMakeOption, bool] = Field(default_factory=dict["CMakeOption", bool])
    """Each on or off; they reach the build as `CMAKE_ARGS`."""
    switches: Annotated[tuple[Switch, ...], Field(max_length=8)] = ()
    """Variables of the package's own build script, each set to 1: `<PACKAGE>_BUILD_<WHAT>`."""
    requirements: Annotated[tuple[Requirement, ...], Field(min_length=1, max_length=32)]
    """All that the build itself is made with, each of one version."""
    hashes: dict[Requirement, Annotated[tuple[Hash, ...], Field(min_length=1, max_length=64)]]
    """Of each of them."""
    tools: Annotated[tuple[BuildTool, ...], Field(max_length=16)] = ()
    """What the machine must have before anything is built."""

    def __hash__(self) -> int:
        return hash((self.switches, self.requirements, self.tools))

    def lacks(self, there: Collection[str]) -> list[BuildTool]:
        """What a machine that has so much does not have."""
        return [tool for tool in self.tools if tool not in there]


def environment_of(source: SourceBuild) -> dict[str, str]:
    """The variables that tell a build its options; the same recipe gives the same."""
    said = " ".join(f"-D{name}={'ON' if on else 'OFF'}" for name, on in sorted(source.cmake.items()))
    return {**({"CMAKE_ARGS": said} if said else {}), **dict.fromkeys(source.switches, "1")}


def faults_of(source: SourceBuild, package: str) -> Iterator[str]:
    """What is wrong with it beside its types; `package`: the one that is built."""
    own = "".join(letter if letter.isalnum() else "_" for letter in package.upper()) + "_BUILD_"
    for option in _FETCHING:
        if source.cmake.get(option):
            yield f"source.cmake.{option} is on: it fetches what no hash locks, and can only be off"
    for switch in source.switches:
        if not switch.startswith(own):
            yield f"source.switches: {switch} is none of {package}: want {own} and what is built"
    for requirement in source.requirements:
        if requirement not in source.hashes:
            yield f"source.requirements: {requirement} has no hashes: what builds an engine is locked"
    for requirement in source.hashes:
        if requirement not in source.requirements:
            yield f"source.hashes.{requirement} is none of source.requirements"

"""Building an engine's package on the node, by the real installer: what reaches the build, and what never runs."""

import hashlib
import io
import json
import os
import sys
import tarfile
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest
from weft_contracts.backends import TOOLS, BackendVariant, SourceBuild, builtin_recipes
from weft_testing.wheels import wheels_of_installed, write_wheel
from weft_worker_agent.domain.install_faults import fault_of
from weft_worker_agent.domain.install_plan import plan
from weft_worker_agent.domain.install_progress import InstallProgress, heard
from weft_worker_agent.outbound.backends import host_code
from weft_worker_agent.outbound.backends.build_tools import build_environment, missing_tool, tools_there
from weft_worker_agent.outbound.backends.first_run import InstallFailed
from weft_worker_agent.outbound.backends.installer import Installer
from weft_worker_agent.outbound.backends.sources import PackageSources

ECHO = Path(__file__).parents[3] / "tests" / "packages" / "echo" / "weft_echo"
SEEN = ("CMAKE_ARGS", "WEFT_ECHO_BUILD_VULKAN", "NPROC", "WEFT_JOIN_TOKEN")
BUILDER = f"""
import json, os, pathlib
from weft_testing.wheels import write_wheel

def build_wheel(folder, config_settings=None, metadata_directory=None):
    seen = {{name: os.environ[name] for name in {SEEN!r} if name in os.environ}}
    seen["nice"] = os.nice(0)
    pathlib.Path(os.environ["HOME"], "built.json").write_text(json.dumps(seen))
    if os.environ.get("CMAKE_ARGS") == "-DGGML_METAL=ON":
        raise SystemExit("ggml.c:1:1: error: no such framework")
    files = {{f"weft_echo/{{path.name}}": path.read_text() for path in pathlib.Path("weft_echo").glob("*.py")}}
    entry = "[weft.engines]\\necho = weft_echo.profile:PROFILE\\n"
    return write_wheel(pathlib.Path(folder), "weft-echo", "1.0", files, entry_points=entry).name
"""
WHEELS = Path(sys.modules[write_wheel.__module__].__file__ or "")


def sha256(path: Path) -> tuple[str, ...]:
    return (f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}",)


def an_archive(folder: Path) -> Path:
    """The echo's source, to be built by `weft-builder`."""
    project = '[build-system]\nrequires = ["weft-builder"]\nbuild-backend = "weft_builder"\n'
    project += '[project]\nname = "weft-echo"\nversion = "1.0"\n'
    files = {"pyproject.toml": project, "PKG-INFO": "Metadata-Version: 2.1\nName: weft-echo\nVersion: 1.0\n"}
    files |= {f"weft_echo/{path.name}": path.read_text() for path in ECHO.glob("*.py")}
    made = folder / "weft_echo-1.0.tar.gz"
    with tarfile.open(made, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"weft_echo-1.0/{name}")
            member.size = len(content.encode())
            archive.addfile(member, io.BytesIO(content.encode()))
    return made


class Place:
    """A folder of packages with the echo as source alone, and a home in which its build leaves what it saw."""

    def __init__(self, packages: Path, home: Path) -> None:
        self.packages, self.home = packages, home
        self.archive = an_archive(packages)
        own = WHEELS.read_text()
        files = {"weft_builder.py": BUILDER, "weft_testing/__init__.py": "", "weft_testing/wheels.py": own}
        self.builder = write_wheel(packages, "weft-builder", "1.0", files)

    def variant(self, cmake: dict[str, bool], **changed: Any) -> BackendVariant:
        source = {
            "cmake": cmake,
            "switches": ["WEFT_ECHO_BUILD_VULKAN"],
            "requirements": ["weft-builder==1.0"],
            "hashes": {"weft-builder==1.0": sha256(self.builder)},
        }
        return BackendVariant.model_validate(
            {
                "vendor": "cpu",
                "package": "weft-echo",
                "version": "1.0",
                "requirements": ["weft-echo==1.0"],
                "hashes": {"weft-echo==1.0": sha256(self.archive)},
                "disk": 1,
                "source": source | changed,
            }
        )

    def seen(self) -> dict[str, Any] | None:
        """What the build saw; None: none ran."""
        path = self.home / "built.json"
        return json.loads(path.read_text()) if path.exists() else None


@pytest.fixture(scope="session")
def hosts_packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packages")
    wheels_of_installed(folder, host_code.requirements())
    return folder


@pytest.fixture
def place(hosts_packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    packages, home = tmp_path / "packages", tmp_path / "home"
    packages.mkdir()
    home.mkdir()
    for each in hosts_packages.iterdir():
        os.link(each, packages / each.name)
    monkeypatch.setenv("HOME", str(home))
    return Place(packages, home)


@pytest.fixture
async def installer(place: Place, tmp_path: Path) -> AsyncGenerator[Installer]:
    made = Installer(tmp_path / "backends", PackageSources(offline=place.packages), silence_s=60, at_once=1, jobs=3)
    yield made
    await made.close()


async def test_a_package_is_built_with_the_recipes_options_beside_what_serves_here(
    place: Place, installer: Installer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_JOIN_TOKEN", "secret")
    monkeypatch.setenv("CMAKE_ARGS", "-DCMAKE_TOOLCHAIN_FILE=/somebody/elses")
    # when
    made = await installer.want("echo", place.variant({"GGML_VULKAN": True, "LLAMA_LLGUIDANCE": False}))
    # then the engine is there, and its build saw the recipe's words alone
    assert ("echo", "1.0") == (made.profile.name, made.version)
    seen = place.seen()
    assert seen is not None
    assert min(os.nice(0) + 10, 19) == seen.pop("nice")
    assert {
        "CMAKE_ARGS": "-DGGML_VULKAN=ON -DLLAMA_LLGUIDANCE=OFF",
        "WEFT_ECHO_BUILD_VULKAN": "1",
        "NPROC": "3",
    } == seen


async def test_other_options_lie_in_another_environment(place: Place, installer: Installer) -> None:
    one = await installer.want("echo", place.variant({"GGML_VULKAN": True}))
    two = await installer.want("echo", place.variant({"GGML_VULKAN": True, "GGML_NATIVE": False}))
    assert one.name != two.name
    assert {one.name, two.name} == {each.name for each in installer.installed}


Change = Callable[[Place], BackendVariant]


def half_made(folder: Path) -> list[Path]:
    return [*folder.glob(".making*")]


def with_another_archive(place: Place) -> BackendVariant:
    variant = place.variant({"GGML_VULKAN": True})
    place.archive.write_bytes(an_archive(place.packages).read_bytes() + b"more")
    return variant


def with_another_builder(place: Place) -> BackendVariant:
    return place.variant({"GGML_VULKAN": True}, hashes={"weft-builder==1.0": ("sha256:" + "0" * 64,)})


def with_a_tool_that_is_not_here(place: Place) -> BackendVariant:
    there = tools_there()
    return place.variant({"GGML_VULKAN": True}, tools=[next(each for each in TOOLS if each not in there)])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (with_another_archive, "hash mismatch"),
        (with_another_builder, "weft-builder"),
        (with_a_tool_that_is_not_here, "weft-echo 1.0 is built here, which needs "),
    ],
)
async def test_nothing_of_a_package_runs_that_is_not_what_the_recipe_locked(
    place: Place, installer: Installer, tmp_path: Path, change: Change, reason: str
) -> None:
    with pytest.raises(InstallFailed) as failed:
        await installer.want("echo", change(place))
    assert reason.lower() in failed.value.fault.reason.lower()
    assert place.seen() is None
    assert not half_made(tmp_path / "backends")


async def test_of_a_build_that_fails_the_compilers_own_words_are_told(place: Place, installer: Installer) -> None:
    with pytest.raises(InstallFailed) as failed:
        await installer.want("echo", place.variant({"GGML_METAL": True}))
    assert "could not be built here: " in failed.value.fault.reason
    assert "ggml.c:1:1: error: no such framework" in failed.value.fault.reason
    assert failed.value.fault.local


def test_only_what_the_recipe_says_is_built_and_the_rest_comes_after_it() -> None:
    variant = next(each for each in builtin_recipes()["llama.cpp"].variants if each.vendor == "amd")
    built, rest = plan("llama.cpp", variant, "3.11 linux x86_64", ("grpcio>=1.70",)).steps
    assert ("xllamacpp", True) == (built.built, built.require_hashes)
    assert "--hash=sha256:" in built.requirements[0]
    assert ("", None) == (rest.built, rest.source)
    assert ("xllamacpp==2026.10.11549", "grpcio>=1.70") == rest.requirements


def test_a_build_is_told_as_what_it_is() -> None:
    progress = heard(InstallProgress("fetching"), "   Building xllamacpp==2026.10.11549")
    assert ("building", "xllamacpp") == (progress.phase, progress.package)
    progress = heard(progress, "      Built xllamacpp==2026.10.11549")
    assert ("fetching", "") == (progress.phase, progress.package)


def test_of_a_compilers_many_lines_the_first_errors_are_told() -> None:
    lines = [
        "  × Failed to build `xllamacpp==2026.10.11549`",
        "[ 30%] Building CXX object ggml-vulkan.cpp.o",
        "ggml-vulkan.cpp:5237:21: error: 'LayerSettingEXT' is not a member of 'vk'",
        *["note: in expansion of macro"] * 50,
        "gmake: *** [Makefile:661: llama-common] Error 2",
    ]
    fault = fault_of("llama.cpp", "1", 1, lines)
    assert "'LayerSettingEXT' is not a member of 'vk' gmake: ***" in fault.reason
    assert "note" not in fault.reason


@pytest.mark.parametrize(
    ("line", "local"),
    [
        ("CMake Error at CMakeLists.txt:8: Could NOT find Vulkan", True),
        ("c++: fatal error: Killed signal terminated program cc1plus", False),
        ("Failed to resolve requirements from `build-system.requires`: the index could not be reached", False),
    ],
)
def test_a_build_is_tried_again_where_what_it_lacked_may_come_back(line: str, local: bool) -> None:
    assert local == fault_of("llama.cpp", "1", 1, ["  × Failed to build `xllamacpp==1`", line]).local


def a_toolkit(root: Path, header: str) -> dict[str, str]:
    """An environment whose programs are all there, and Vulkan's headers with these words."""
    programs, include = root / "bin", root / "sdk" / "include"
    (include / "vulkan").mkdir(parents=True)
    (include / "vulkan" / "vulkan_core.h").write_text(header)
    (include / "spirv" / "unified1").mkdir(parents=True)
    (include / "spirv" / "unified1" / "spirv.hpp").write_text("")
    programs.mkdir()
    for name in ("g++", "cmake", "make", "glslc"):
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o700)
    return {"PATH": str(programs), "VULKAN_SDK": str(root / "sdk")}


def test_what_a_machine_has_to_build_with_is_found_in_its_path_and_its_toolkits(tmp_path: Path) -> None:
    variant = next(each for each in builtin_recipes()["llama.cpp"].variants if each.vendor == "intel")
    environ = a_toolkit(tmp_path, "#define VK_EXT_layer_settings 1\n")
    assert {"c++", "cmake", "make", "glslc", "vulkan", "spirv-headers"} <= {*tools_there(environ)}
    assert missing_tool(variant, environ) is None


def test_what_lacks_is_named_with_what_to_install(tmp_path: Path) -> None:
    variant = next(each for each in builtin_recipes()["llama.cpp"].variants if each.vendor == "intel")
    environ = a_toolkit(tmp_path, "#define VK_EXT_layer_settings 1\n")
    (tmp_path / "bin" / "glslc").unlink()
    fault = missing_tool(variant, environ)
    assert fault is not None
    assert fault.local
    assert "is built here, which needs glslc, which compiles Vulkan's shaders (Debian" in fault.reason


def test_a_builds_own_variables_say_the_recipes_options_and_how_many_compilers_run(tmp_path: Path) -> None:
    source = SourceBuild.model_validate({"cmake": {"GGML_CUDA": True}, "requirements": ["a==1"], "hashes": {}})
    said = build_environment(source, 4, {"PATH": "/bin", "VULKAN_SDK": str(tmp_path), "HOME": "/h", "CXX": "evil"})
    assert ("-DGGML_CUDA=ON", "4", str(tmp_path)) == (said["CMAKE_ARGS"], said["NPROC"], said["VULKAN_SDK"])
    assert said["PATH"].startswith(f"/bin:{tmp_path}/bin")
    assert not {"HOME", "CXX"} & said.keys()

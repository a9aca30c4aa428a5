"""Recipes that build a package on the node: what they may say to its build, and which devices they are for."""

from typing import Any

import pytest
from weft_contracts.backends import (
    TOOLS,
    BackendVariant,
    BadRecipe,
    builtin_recipes,
    environment_of,
    fault_of_recipe,
    recipe_of,
)
from weft_contracts.engines import BUILTIN

HASH = ["sha256:" + "0" * 64]
SOURCE: dict[str, Any] = {
    "cmake": {"GGML_VULKAN": True, "LLAMA_LLGUIDANCE": False},
    "switches": ["XLLAMACPP_BUILD_VULKAN"],
    "requirements": ["setuptools==80.9.0"],
    "hashes": {"setuptools==80.9.0": HASH},
    "tools": ["c++", "glslc"],
}
LLAMA_CPP = builtin_recipes()["llama.cpp"]


def entry(source: dict[str, Any], **changed: Any) -> dict[str, Any]:
    variant = {
        "vendor": "amd",
        "package": "xllamacpp",
        "version": "1.0",
        "requirements": ["xllamacpp==1.0"],
        "hashes": {"xllamacpp==1.0": HASH},
        "disk": 1,
        "source": source,
    }
    return {"engine": "llama.cpp", "variants": [variant | changed]}


def variant(**changed: Any) -> BackendVariant:
    return recipe_of(entry(SOURCE | changed)).variants[0]


def test_a_build_is_told_its_options_and_nothing_else() -> None:
    source = variant().source
    assert source is not None
    assert {
        "CMAKE_ARGS": "-DGGML_VULKAN=ON -DLLAMA_LLGUIDANCE=OFF",
        "XLLAMACPP_BUILD_VULKAN": "1",
    } == environment_of(source)


def test_each_option_makes_another_backend() -> None:
    digests = [
        variant().digest,
        variant(cmake={"GGML_VULKAN": True, "LLAMA_LLGUIDANCE": False, "GGML_NATIVE": False}).digest,
        variant(cmake={"GGML_CUDA": True, "LLAMA_LLGUIDANCE": False}).digest,
        variant(switches=[]).digest,
        variant(hashes={"setuptools==80.9.0": ["sha256:" + "1" * 64]}).digest,
        recipe_of(entry(SOURCE, disk=2)).variants[0].digest,
    ]
    assert len(digests) == len(set(digests))


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"cmake": {"CMAKE_CXX_COMPILER": True}}, "Input should be 'GGML_CUDA'"),
        ({"cmake": {"CMAKE_CXX_COMPILER_LAUNCHER": "/tmp/x"}}, "variants.0.source.cmake"),
        ({"cmake": {"GGML_VULKAN": "ON -DCMAKE_TOOLCHAIN_FILE=/tmp/x"}}, "valid boolean"),
        ({"cmake": {"GGML_VULKAN=ON;X": True}}, "variants.0.source.cmake"),
        ({"cmake": ["-DGGML_VULKAN=ON"]}, "valid dictionary"),
        ({"switches": ["LD_PRELOAD"]}, "'LD_PRELOAD' is no switch of a build"),
        ({"switches": ["PATH"]}, "is no switch of a build"),
        ({"switches": ["XLLAMACPP_BUILD_VULKAN=1"]}, "is no switch of a build"),
        ({"switches": ["XLLAMACPP_BUILD_A\nX"]}, "is no switch of a build"),
        ({"requirements": ["--no-binary=:all:"]}, "is no requirement"),
        ({"requirements": ["setuptools @ http://evil/x.whl"]}, "is no requirement"),
        ({"requirements": []}, "at least 1 item"),
        ({"hashes": {"setuptools==80.9.0": ["md5:0"]}}, "is no hash"),
        ({"tools": ["/bin/sh"]}, "Input should be 'c"),
        ({"tools": ["c++; id"]}, "variants.0.source.tools.0"),
        ({"run": "id"}, "variants.0.source.run is not a field of a recipe"),
        ({"environment": {"PATH": "/tmp"}}, "variants.0.source.environment is not a field of a recipe"),
    ],
)
def test_what_a_hostile_build_is_refused_for(changed: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadRecipe, match=sentence):
        recipe_of(entry(SOURCE | changed))


@pytest.mark.parametrize(
    ("source", "changed", "sentence"),
    [
        ({}, {}, None),
        ({"switches": ["PYTHON_BUILD_X"]}, {}, "PYTHON_BUILD_X is none of xllamacpp: want XLLAMACPP_BUILD_"),
        ({"cmake": {"LLAMA_LLGUIDANCE": True}}, {}, "LLAMA_LLGUIDANCE is on: it fetches what no hash locks"),
        ({"cmake": {"LLAMA_BUILD_BORINGSSL": True}}, {}, "can only be off"),
        ({"hashes": {}}, {}, "source.requirements: setuptools==80.9.0 has no hashes"),
        ({"requirements": ["setuptools"], "hashes": {"setuptools": HASH}}, {}, "setuptools names no single version"),
        ({"hashes": SOURCE["hashes"] | {"other==1": HASH}}, {}, "source.hashes.other==1 is none of"),
        ({}, {"hashes": {}}, "xllamacpp==1.0 has no hashes: what is built here is locked to one archive"),
        ({}, {"requirements": ["xllamacpp>=1.0"], "hashes": {}}, "requirements lack xllamacpp==1.0"),
    ],
)
def test_a_build_is_locked_to_one_archive_and_to_what_builds_it(
    source: dict[str, Any], changed: dict[str, Any], sentence: str | None
) -> None:
    fault = fault_of_recipe(recipe_of(entry(SOURCE | source, **changed)), BUILTIN["llama.cpp"])
    assert fault is None if sentence is None else fault is not None and sentence in fault


@pytest.mark.parametrize(
    ("vendor", "option"),
    [("nvidia", "GGML_CUDA"), ("amd", "GGML_VULKAN"), ("intel", "GGML_VULKAN"), ("apple", None), ("cpu", None)],
)
def test_llama_cpp_is_built_for_the_vendor_of_the_devices(vendor: Any, option: str | None) -> None:
    chosen = LLAMA_CPP.for_driver(vendor, None)
    assert chosen is not None
    on = [] if chosen.source is None else [name for name, on in chosen.source.cmake.items() if on]
    assert ([] if option is None else [option]) == on


def test_every_llama_cpp_is_of_one_version_whatever_it_is_built_for() -> None:
    assert 1 == len({(each.package, each.version) for each in LLAMA_CPP.variants})
    assert len(LLAMA_CPP.variants) == len({each.digest for each in LLAMA_CPP.variants})


def test_what_is_built_has_no_llguidance_so_that_schemas_that_need_it_are_refused_and_not_passed_over() -> None:
    built = [each for each in LLAMA_CPP.variants if each.source is not None]
    assert built
    for each in built:
        assert each.source is not None
        assert each.source.cmake["LLAMA_LLGUIDANCE"] is False
        assert not any(requirement.startswith("llguidance") for requirement in each.requirements)


def test_there_is_a_sentence_for_every_tool() -> None:
    assert all(TOOLS[tool].strip() for each in LLAMA_CPP.variants if each.source for tool in each.source.tools)

"""The catalogue of backends: what Weft comes with, how entries are read, and what a hostile one is told."""

from typing import Any

import pytest
from weft_contracts.backends import (
    BadRecipe,
    builtin_recipes,
    document,
    fault_of_recipe,
    recipe_of,
)
from weft_contracts.backends.recipe import drives
from weft_contracts.codec import decode, encode, encode_headers
from weft_contracts.commit import Cause, Commit, Guard
from weft_contracts.engines import BUILTIN
from weft_contracts.facts.mesh import BackendSet
from weft_contracts.headers import SKIPPABLE
from weft_contracts.ids import CorrelationId, EventId
from weft_contracts.subjects import MESH

VARIANT: dict[str, Any] = {
    "vendor": "cpu",
    "package": "mine",
    "version": "1.0",
    "requirements": ["mine==1.0"],
    "disk": 1,
}


def entry(**changed: Any) -> dict[str, Any]:
    return {"engine": "llama.cpp", "variants": [VARIANT | changed]}


def test_the_built_in_entries_can_be_used_and_are_for_built_in_engines() -> None:
    for engine, recipe in builtin_recipes().items():
        assert engine == recipe.engine
        assert fault_of_recipe(recipe, BUILTIN[engine]) is None


def test_no_built_in_entry_lets_a_find_links_folder_for_processors_decide_for_accelerators() -> None:
    for recipe in builtin_recipes().values():
        assert all(not each.find_links for each in recipe.variants if each.vendor != "cpu")


@pytest.mark.parametrize(
    "requirement",
    [
        "--pre",
        "--trusted-host=evil",
        "-r/etc/passwd",
        "-e.",
        "mine @ http://evil/mine.whl",
        "mine@file:///etc",
        "http://evil/mine.whl",
        "git+https://evil/mine",
        "./mine",
        "../mine",
        "/tmp/mine.whl",
        "mine-1.0-py3-none-any.whl/..",
        "mine==1.0; sys_platform == 'linux'",
        "mine==1.0 --hash=sha256:0",
        "mine==1.0\n--pre",
        "mine==1.0\\",
        "$(id)",
        "mine==",
        "",
        "m" * 65,
        "mine>=" + "1" * 65,
    ],
)
def test_a_requirement_is_a_name_with_versions_and_nothing_else(requirement: str) -> None:
    for field in ("requirements", "constraints"):
        with pytest.raises(BadRecipe, match="is no requirement: want a name and versions like"):
            recipe_of(entry(**{field: [requirement]}))


@pytest.mark.parametrize("requirement", ["mine", "mine==1.0", "Mine_x.y[a,b]>=1,<2", "mine~=1.0.post1", "mine==1.*"])
def test_what_names_and_versions_may_look_like(requirement: str) -> None:
    assert (requirement,) == recipe_of(entry(requirements=[requirement])).variants[0].requirements


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"package": "../mine"}, "is no name of a distribution"),
        ({"version": "../../1"}, "is no version"),
        ({"excludes": ["-x"]}, "is no name of a distribution"),
        ({"driver_least": "new"}, "is no driver's version"),
        ({"hashes": {"mine==1.0": ["md5:0"]}}, "is no hash"),
        ({"hashes": {"mine==1.0": []}}, "at least 1 item"),
        ({"index": "http://evil"}, "variants.0.index is not a field of a recipe"),
        ({"vendor": "acme"}, "Input should be 'nvidia'"),
        ({"disk": -1}, "greater than or equal to 0"),
        ({"requirements": []}, "at least 1 item"),
        ({"requirements": ["a"] * 65}, "at most 64 items"),
        ({"needs": [{"kind": "library", "name": "/etc/passwd", "say": "x"}]}, "can't be looked for"),
        ({"needs": [{"kind": "device", "name": "/dev/../etc/passwd", "say": "x"}]}, "can't be looked for"),
        ({"needs": [{"kind": "library", "name": "libx.so", "say": "\x1b[2J"}]}, "is no sentence"),
        ({"needs": [{"kind": "library", "name": "libx.so", "say": "x", "run": "id"}]}, "run is not a field"),
        ({"build": "--rocm"}, "build: '--rocm' is no build: want letters and digits like rocm"),
    ],
)
def test_what_else_a_hostile_entry_is_refused_for(changed: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadRecipe, match=sentence):
        recipe_of(entry(**changed))


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"vendor": "ascend"}, "variants.0.vendor is ascend: llama.cpp computes on nvidia, amd, intel, apple, cpu"),
        ({"disk": 0}, "disk is 0"),
        ({"disk": 1 << 41}, "want the bytes that it takes, up to"),
        ({"driver_least": "5", "driver_below": "5.0"}, None),
        ({"driver_least": "6", "driver_below": "5"}, "nothing lies between"),
        ({"hashes": {"other==1": ["sha256:" + "0" * 64]}}, "hashes.other==1 is none of requirements"),
        ({"requirements": ["a>=1"], "hashes": {"a>=1": ["sha256:" + "0" * 64]}}, "names no single version"),
        ({"locked": True}, "locked is true and mine==1.0 has no hashes"),
        ({"needs": [{"kind": "device", "name": "libx.so", "say": "x"}]}, "libx.so is no device"),
        ({"constraints": ["a" * 64 + ">=" + "1" * 64] * 200}, "bytes as JSON"),
    ],
)
def test_what_is_wrong_with_an_entry_beside_its_types(changed: dict[str, Any], sentence: str | None) -> None:
    fault = fault_of_recipe(recipe_of(entry(**changed)), BUILTIN["llama.cpp"])
    assert fault is None if sentence is None else fault is not None and sentence in fault


def test_an_entry_is_for_an_engine_that_the_mesh_knows() -> None:
    recipe = recipe_of(entry() | {"engine": "mine"})
    assert "the mesh knows no engine mine: send its profile with the recipe" == fault_of_recipe(recipe, None)
    assert "want one engine" in str(fault_of_recipe(recipe, BUILTIN["vllm"]))
    with pytest.raises(BadRecipe, match="engine: String should match pattern"):
        recipe_of(entry() | {"engine": "../mine"})


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: [", "it is no YAML"),
        ("a: !!python/object/apply:os.system [id]", "it is no YAML"),
        ("a: &x [1]\nb: [*x, *x]", "it uses an alias"),
        ("x" * 70_000, "characters"),
        ("[" * 30_000, "nested more than 32 levels"),
    ],
)
def test_a_hostile_file_is_refused_before_anything_is_made_of_it(text: str, sentence: str) -> None:
    with pytest.raises(BadRecipe, match=sentence):
        document(text)


def test_a_range_of_drivers_counts_numbers() -> None:
    variant = recipe_of(entry(driver_least="575.9", driver_below="600")).variants[0]
    assert [False, True, True, False, True] == [
        drives(variant, driver) for driver in ("575.8.99", "575.9", "575.51.03", "600.0", None)
    ]


def test_an_entry_goes_through_the_log_as_it_is_and_a_reader_may_pass_over_it() -> None:
    recipe = recipe_of(entry(hashes={"mine==1.0": ["sha256:" + "0" * 64]}, locked=True))
    commit = Commit(MESH, (BackendSet(recipe=recipe),), Guard(MESH, 0), Cause(CorrelationId("c-1")))
    assert "backend_set" == encode_headers(commit, EventId("e-1"), "registry")[SKIPPABLE]
    assert commit.facts == decode(MESH.subject("backend_set"), 1, encode(commit), {}, 0.0).facts

"""The engines that an environment knows: built-in ones, and what packages bring by an entry point."""

from collections.abc import Callable
from pathlib import Path

import pytest
from weft_contracts.engines import BUILTIN, EngineProfile
from weft_engine import installed
from weft_engine.installed import NotInstalled, adapter_of, profile_of, version_of

PROFILE = """
from weft_contracts.engines import BUILTIN
PROFILE = BUILTIN["simulated"].model_copy(update={"name": "brought"})
"""
Bring = Callable[[str, str], None]


@pytest.fixture
def bring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bring:
    """Install a package whose one module brings an engine."""

    def install(entry_point: str, module: str) -> None:
        about = tmp_path / "brings_an_engine-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: brings-an-engine\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(f"[weft.engines]\n{entry_point}\n")
        (tmp_path / f"{tmp_path.name}_brought.py").write_text(module)
        monkeypatch.syspath_prepend(tmp_path)

    return install


def known() -> dict[str, EngineProfile]:
    return {found.name: found for found in installed.profiles() if isinstance(found, EngineProfile)}


def faults() -> list[str]:
    return [str(found) for found in installed.profiles() if isinstance(found, NotInstalled)]


def test_what_a_package_brings_is_known_beside_the_built_in_engines(bring: Bring, tmp_path: Path) -> None:
    bring(f"brought = {tmp_path.name}_brought:PROFILE", PROFILE)
    assert [*BUILTIN, "brought"] == list(known())
    assert "brought" == profile_of("brought").name
    assert [] == faults()


def test_a_package_can_not_bring_another_profile_of_a_built_in_engine(bring: Bring, tmp_path: Path) -> None:
    bring(f"llama.cpp = {tmp_path.name}_brought:PROFILE", PROFILE)
    assert BUILTIN["llama.cpp"] is profile_of("llama.cpp")
    assert list(BUILTIN) == list(known())


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("raise OSError('it is broken')", "the profile of the engine brought can't be read: it is broken"),
        ("PROFILE = 'a word'", "_brought:PROFILE is no profile of the engine brought"),
        (PROFILE.replace('"brought"', '"another"'), "_brought:PROFILE is no profile of the engine brought"),
        ("", "the profile of the engine brought can't be read: "),
    ],
)
def test_what_can_not_be_read_is_named_and_left_out(bring: Bring, tmp_path: Path, module: str, words: str) -> None:
    bring(f"brought = {tmp_path.name}_brought:PROFILE", module)
    (said,) = faults()
    assert words in said
    assert list(BUILTIN) == list(known())


def test_an_engine_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(NotInstalled, match=r"there is no engine 'vroom' in this environment: there are llama\.cpp"):
        profile_of("vroom")


def test_an_engine_without_an_adapter_can_not_be_run() -> None:
    built_in = BUILTIN["simulated"]
    bare = built_in.model_copy(update={"install": built_in.install.model_copy(update={"adapter": ""})})
    for asked in (adapter_of, version_of):
        with pytest.raises(NotInstalled, match="the engine simulated has no adapter yet: nothing can run it"):
            asked(bare)


def test_an_engine_is_found_by_the_name_that_it_has_where_it_is_built_for_other_devices() -> None:
    built_in = BUILTIN["simulated"]
    away = built_in.install.model_copy(update={"package": "not-there", "also": ("nor-this", "weft-engine")})
    assert version_of(built_in) == version_of(built_in.model_copy(update={"install": away}))


def test_a_missing_package_or_adapter_is_named() -> None:
    built_in = BUILTIN["simulated"]
    away = built_in.install.model_copy(update={"package": "not-there", "adapter": "weft_engine.adapters.none:None"})
    profile = built_in.model_copy(update={"install": away})
    with pytest.raises(NotInstalled, match="install not-there"):
        version_of(profile)
    with pytest.raises(NotInstalled, match="the adapter of the engine simulated can't be loaded: No module named"):
        adapter_of(profile)


@pytest.mark.parametrize("profile", [p for p in BUILTIN.values() if p.install.adapter], ids=lambda p: p.name)
def test_the_adapter_that_a_built_in_profile_names_is_there(profile: EngineProfile) -> None:
    assert callable(adapter_of(profile).start)

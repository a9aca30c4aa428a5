"""Which files an engine takes: rules over names alone."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.engines import FileFormat
from weft_contracts.facts.source import MOST_FILES, SourceFile
from weft_sources.choice import choose
from weft_sources.found import FoundFile
from weft_sources.gguf_choice import has_component
from weft_sources.refused import SourceRefused

QUANTISATIONS = ("Q4_K_M", "Q4_K", "Q4_0", "IQ4_XS", "Q8_0", "F16", "BF16", "Q5_K_S")


def chosen(names: Sequence[str], formats: Sequence[FileFormat], wanted: str = "", index: bytes = b"") -> list[str]:
    files = tuple(FoundFile(name, 10) for name in names)
    return [file.name for file in choose(files, formats, wanted, "a/b", lambda _: index)]


def refusal(names: Sequence[str], formats: Sequence[FileFormat], wanted: str = "", index: bytes = b"") -> str:
    with pytest.raises(SourceRefused) as refused:
        chosen(names, formats, wanted, index)
    return str(refused.value)


def index_of(*names: str) -> bytes:
    return json.dumps({"metadata": {}, "weight_map": {f"t{at}": name for at, name in enumerate(names)}}).encode()


def test_the_only_gguf_model_is_taken_with_its_metadata_behind_it() -> None:
    there = ["README.md", "tokenizer.json", "m-Q8_0.gguf", "config.json", "mmproj-m-f16.gguf", "imatrix.gguf"]
    assert ["m-Q8_0.gguf", "config.json", "tokenizer.json"] == chosen(there, ("gguf",))


def test_several_gguf_models_are_asked_back_with_the_candidates() -> None:
    said = refusal(["m-Q4_K_M.gguf", "m-Q8_0.gguf"], ("gguf",))
    assert "a/b: 2 GGUF models are there; say which: m-Q4_K_M.gguf, m-Q8_0.gguf" == said


def test_a_quantisation_that_is_not_there_is_answered_with_those_that_are() -> None:
    said = refusal(["m-Q4_K_M.gguf", "m-Q8_0.gguf"], ("gguf",), "Q5_0")
    assert "a/b holds no Q5_0: it has m-Q4_K_M.gguf, m-Q8_0.gguf" == said


def test_a_list_of_candidates_is_bounded() -> None:
    said = refusal([f"m{number:03}-Q8_0.gguf" for number in range(100)], ("gguf",))
    assert said.endswith("m011-Q8_0.gguf and 88 more")


@pytest.mark.parametrize("wanted", ["Q4_K_M", "q4_k_m", "m-Q4_K_M.gguf", "m-Q4_K_M"])
def test_a_model_is_named_by_its_quantisation_in_any_case_or_by_its_file(wanted: str) -> None:
    assert ["m-Q4_K_M.gguf"] == chosen(["m-Q4_K_M.gguf", "m-Q4_K_S.gguf", "m-Q4_K.gguf"], ("gguf",), wanted)


def test_a_shorter_quantisation_is_not_the_longer_one() -> None:
    assert ["m-Q4_K.gguf"] == chosen(["m-Q4_K_M.gguf", "m-Q4_K.gguf"], ("gguf",), "Q4_K")


def test_a_split_model_is_all_of_its_parts_in_order() -> None:
    parts = [f"Q4_0/m-Q4_0-{number:05}-of-00003.gguf" for number in (3, 1, 2)]
    assert sorted(parts) == chosen([*parts, "m-Q8_0.gguf"], ("gguf",), "q4_0")


def test_a_split_model_without_one_part_is_refused() -> None:
    said = refusal(["m-00001-of-00003.gguf", "m-00003-of-00003.gguf"], ("gguf",))
    assert "a/b: m is 3 files, and part 2 is missing" == said


def test_a_vision_projector_alone_is_no_model() -> None:
    assert "a/b holds nothing that this engine loads: it takes a GGUF model" == refusal(["mmproj.gguf"], ("gguf",))


def test_safetensors_are_those_at_the_root_and_config_comes_first_of_the_small_files() -> None:
    there = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "sub/x.safetensors"]
    there += ["tokenizer.json", "config.json", "original/consolidated.pth", "adapter_model.safetensors"]
    assert [*there[:2], "config.json", "tokenizer.json"] == chosen(there, ("safetensors",))


def test_an_index_says_which_safetensors_files_there_are() -> None:
    there = ["a.safetensors", "b.safetensors", "other.safetensors", "config.json", "model.safetensors.index.json"]
    taken = chosen(there, ("safetensors",), index=index_of("b.safetensors", "a.safetensors"))
    assert ["a.safetensors", "b.safetensors", "config.json", "model.safetensors.index.json"] == taken


@pytest.mark.parametrize(
    ("index", "said"),
    [
        (index_of("c.safetensors"), "names c.safetensors, which is not there"),
        (index_of("../c.safetensors"), "names ../c.safetensors, which is not there"),
        (index_of("c.json"), "names c.json, which is no safetensors file"),
        (index_of("pytorch_model.bin"), "pickles (pytorch_model.bin)"),
        (b"[]", "is no index of safetensors files"),
        (b'{"weight_map": {"a": 3}}', "is no index of safetensors files"),
        (b'{"weight_map": {"a": ["b"]}}', "is no index of safetensors files"),
        (b"{" * 100_000, "is no index of safetensors files"),
        (b'{"a":' * 100_000, "is no index of safetensors files"),
    ],
)
def test_an_index_that_names_what_cannot_be_loaded_is_refused(index: bytes, said: str) -> None:
    there = ["a.safetensors", "config.json", "c.json", "pytorch_model.bin", "model.safetensors.index.json"]
    assert said in refusal(there, ("safetensors",), index=index)


def test_pickles_are_refused_with_the_reason() -> None:
    said = refusal(["pytorch_model.bin", "config.json"], ("safetensors",))
    assert "pickles (pytorch_model.bin), which run code when they are loaded" in said


def test_safetensors_without_a_configuration_are_refused() -> None:
    assert "no config.json" in refusal(["model.safetensors"], ("safetensors",))


def test_a_missing_part_of_safetensors_is_named() -> None:
    said = refusal(["model-00002-of-00002.safetensors", "config.json"], ("safetensors",))
    assert "model is 2 safetensors files, and part 1 is missing" in said


def test_an_engine_of_both_formats_takes_the_first_that_is_there() -> None:
    both = ["m.gguf", "model.safetensors", "config.json"]
    assert "m.gguf" == chosen(both, ("gguf", "safetensors"))[0]
    assert "model.safetensors" == chosen(both, ("safetensors", "gguf"))[0]
    assert "model.safetensors" == chosen(both[1:], ("gguf", "safetensors"))[0]


def test_a_wish_for_one_gguf_model_is_not_overheard_by_an_engine_of_safetensors() -> None:
    said = refusal(["model.safetensors", "config.json"], ("safetensors",), "Q4_K_M")
    assert "a/b: Q4_K_M chooses a GGUF model, and this engine loads safetensors files" == said


def test_an_engine_that_takes_no_files_is_given_none() -> None:
    assert "a/b has files, and this engine takes none" == refusal(["m.gguf"], ())


def test_more_files_than_a_spec_may_name_are_refused() -> None:
    there = [f"model-{number:05}-of-00600.safetensors" for number in range(1, 601)]
    assert f"at most {MOST_FILES}" in refusal([*there, "config.json"], ("safetensors",))


def test_a_name_that_leads_out_of_the_folder_is_passed_over() -> None:
    bad = ["../m.gguf", "/m.gguf", ".hidden/m.gguf", "a/../m.gguf", "m\n.gguf", "a//m.gguf", f"{'a' * 300}.gguf"]
    assert ["m.gguf"] == chosen([*bad, "m.gguf"], ("gguf",))


def test_a_file_without_a_size_is_passed_over() -> None:
    found = (FoundFile("m.gguf", None), FoundFile("n.gguf", 3))
    assert [SourceFile(name="n.gguf", size=3)] == list(choose(found, ("gguf",), "", "a/b", lambda _: b""))


NAMES = st.text(st.sampled_from("ab./-_Q40KM"), max_size=20)
ENDS = st.sampled_from([".gguf", ".safetensors", "-00001-of-00002.gguf", "-00002-of-00002.gguf", ".bin", ".json", ""])
WHATEVER = st.lists(st.builds("{}{}".format, NAMES | st.text(max_size=8), ENDS), max_size=12)


@given(there=WHATEVER, wanted=NAMES, formats=st.permutations(["gguf", "safetensors"]), index=WHATEVER)
def test_whatever_names_there_are_only_usable_ones_that_are_there_are_chosen(
    there: list[str], wanted: str, formats: list[FileFormat], index: list[str]
) -> None:
    try:
        taken = chosen([*there, "config.json"], formats, wanted, index_of(*index))
    except SourceRefused:
        return
    assert set(taken) <= {*there, "config.json"}
    assert not [name for name in taken if ".." in name.split("/") or name.startswith((".", "/")) or "/." in name]
    assert not [name for name in taken if name.endswith(".bin")]
    assert taken[0].lower().endswith((".gguf", ".safetensors"))
    assert len(taken) == len(set(taken)) <= MOST_FILES


@given(there=st.sets(st.sampled_from(QUANTISATIONS), min_size=1), wanted=st.sampled_from(QUANTISATIONS))
@pytest.mark.parametrize("form", ["model-{}.gguf", "model.{}.gguf", "model_{}.gguf", "{}/model.gguf"])
def test_a_quantisation_names_its_own_model_and_no_other(form: str, there: set[str], wanted: str) -> None:
    names = [form.format(each) for each in sorted(there)]
    if wanted in there:
        assert [form.format(wanted)] == chosen(names, ("gguf",), wanted.lower())
    else:
        assert f"holds no {wanted}" in refusal(names, ("gguf",), wanted)


@given(st.integers(1, 60).flatmap(lambda count: st.tuples(st.just(count), st.permutations(range(1, count + 1)))))
def test_parts_come_in_order_however_a_source_lists_them(drawn: tuple[int, list[int]]) -> None:
    count, order = drawn
    taken = chosen([f"m-{number:05}-of-{count:05}.gguf" for number in order], ("gguf",))
    assert [f"m-{number:05}-of-{count:05}.gguf" for number in range(1, count + 1)] == taken


@pytest.mark.parametrize(
    ("stem", "wanted", "is_one"),
    [
        ("m-UD-Q4_K_XL", "UD-Q4_K_XL", True),
        ("m-UD-Q4_K_XL", "q4_k_xl", True),
        ("m-IQ4_XS", "Q4_XS", False),
        ("m-Q4_K_M", "K_M", False),
        ("m-Q4_K_M", "Q4_K", False),
        ("m_Q4_K_M", "Q4_K_M", True),
        ("m-BF16", "F16", False),
    ],
)
def test_a_component_ends_where_the_name_says_so(stem: str, wanted: str, is_one: bool) -> None:
    assert is_one == has_component(stem, wanted)

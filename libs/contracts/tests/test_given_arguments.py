"""What a spec may give an engine as arguments, by what the engine's profile says of each."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.engines import BUILTIN, Argument, EngineProfile
from weft_contracts.engines.given import fault_of_given

GIVEN = {"base_url": "http://10.0.0.5:11434/v1", "model": "llama3.2"}
SERVER = BUILTIN["openai"]
VLLM = BUILTIN["vllm"]


def profile(**arguments: Argument) -> EngineProfile:
    return BUILTIN["simulated"].model_copy(update={"arguments": arguments})


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({}, None),
        ({"key": "secret:cloud-1"}, None),
        ({"model": ""}, "engine_args.model is missing: the engine openai needs it"),
        ({"base_url": 7}, "engine_args.base_url: input should be a valid string, not '7'"),
        ({"base_url": "ftp://x"}, "engine_args.base_url want http://HOST"),
        ({"key": "sk-private"}, "engine_args.key holds a value"),
        ({"key": ["sk-private"]}, "engine_args.key: input should be a valid string"),
        ({"key": "secret:"}, "engine_args.key holds a value"),
        ({"key": "secret:a b"}, "engine_args.key holds a value"),
        ({"speed": 9}, "engine_args.speed is no argument of the engine openai (it has base_url, model, key,"),
    ],
)
def test_what_a_spec_gives_is_held_against_the_profile(changed: dict[str, object], fault: str | None) -> None:
    said = fault_of_given(SERVER, GIVEN | changed)
    assert (said is None) == (fault is None)
    assert said is None or (fault is not None and said.startswith(fault) and "sk-private" not in said)


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("gpu_memory_utilization", 0.9, None),
        ("gpu_memory_utilization", 0, "input should be greater than 0, not '0'"),
        ("gpu_memory_utilization", 1.5, "input should be less than or equal to 1, not '1.5'"),
        ("block_size", 2048, "input should be less than or equal to 1024, not '2048'"),
        ("dtype", "float64", "input should be 'auto', 'float32', 'float16' or 'bfloat16', not 'float64'"),
        ("enforce_eager", "perhaps", "input should be a valid boolean"),
        ("hf_overrides", {"architectures": ["Qwen3ForSequenceClassification"]}, None),
        ("hf_overrides", [1], "input should be a valid dictionary, not '[1]'"),
        ("seed", None, "input should be a valid integer, not 'None'"),
    ],
)
def test_types_ranges_and_choices_are_the_profiles(name: str, value: Any, fault: str | None) -> None:
    said = fault_of_given(VLLM, {name: value})
    assert (said is None) == (fault is None)
    assert said is None or (fault is not None and said.startswith(f"engine_args.{name}: {fault}"))


def test_an_engine_without_arguments_says_that_it_has_none() -> None:
    assert "engine_args.x is no argument of the engine simulated (it has none)" == fault_of_given(profile(), {"x": 1})


def test_the_first_name_that_is_unknown_is_told_and_a_long_one_cut() -> None:
    said = fault_of_given(profile(), {"x" * 5000: 1, "y": 2})
    assert said is not None
    assert said.startswith(f"engine_args.{'x' * 64} is no argument")
    assert len(said) < 200


@given(value=st.integers(), least=st.integers(-9, 9), width=st.integers(0, 9))
def test_a_whole_number_is_taken_exactly_within_its_range(value: int, least: int, width: int) -> None:
    bounded = profile(a=Argument(type="integer", least=least, most=least + width))
    assert (fault_of_given(bounded, {"a": value}) is None) == (least <= value <= least + width)

"""What an engine can be told stands in its profile: the host checks it, the adapter reads it."""

import pytest
from weft_contracts.engines import BUILTIN, Argument
from weft_contracts.facts.values import ArgumentValue
from weft_dataplane import LoadFailed
from weft_engine.adapters.llamacpp_settings import LlamaCppSettings
from weft_engine.adapters.openai_settings import OpenAISettings
from weft_engine.adapters.simulated_settings import SimulatedSettings
from weft_engine.adapters.vllm_settings import VllmSettings
from weft_engine.arguments import check_arguments
from weft_engine.launch import Launch

SETTINGS = {
    "llama.cpp": LlamaCppSettings,
    "simulated": SimulatedSettings,
    "vllm": VllmSettings,
    "openai": OpenAISettings,
}
NEEDED: dict[str, dict[str, ArgumentValue]] = {"openai": {"base_url": "http://10.0.0.5:11434/v1", "model": "llama3.2"}}


def launch(engine: str, **given: ArgumentValue) -> Launch:
    return Launch(
        replica="m-1",
        incarnation="i-1",
        node="n-1",
        revision_digest="d-1",
        engine=engine,
        context_tokens=512,
        concurrency=4,
        engine_args=given,
    )


def fault(engine: str, **given: ArgumentValue) -> str:
    with pytest.raises(LoadFailed) as failed:
        check_arguments(launch(engine, **given), BUILTIN[engine])
    assert failed.value.permanent
    return failed.value.sentence


@pytest.mark.parametrize("engine", SETTINGS)
def test_an_adapter_reads_the_arguments_that_its_profile_names_and_no_other(engine: str) -> None:
    assert list(BUILTIN[engine].arguments) == list(SETTINGS[engine].model_fields)


@pytest.mark.parametrize("engine", SETTINGS)
def test_what_the_profile_allows_the_adapter_takes(engine: str) -> None:
    for name, argument in BUILTIN[engine].arguments.items():
        words = {"": "words", "server_url": "http://10.0.0.5/v1", "secret": "secret:mine"}[argument.form]
        number = max(0.5, argument.least or 0)
        values = {"boolean": True, "integer": 7, "number": number, "text": (argument.choices or (words,))[0]}
        value = values[argument.type]
        given = launch(engine, **NEEDED.get(engine, {}) | {name: value})
        check_arguments(given, BUILTIN[engine])
        assert value == getattr(SETTINGS[engine].of(given), name)


@pytest.mark.parametrize(
    ("engine", "name", "value", "words"),
    [
        ("simulated", "ms_per_token", -1, "ms_per_token: input should be greater than or equal to 0, not '-1'"),
        ("simulated", "load_seconds", 3601, "load_seconds: input should be less than or equal to 3600"),
        ("simulated", "dimensions", 1.5, "dimensions: input should be a valid integer"),
        ("simulated", "embeddings", "perhaps", "embeddings: input should be a valid boolean"),
        ("llama.cpp", "gpu_layers", -2, "gpu_layers: input should be greater than or equal to -1"),
        ("llama.cpp", "cache_type_k", "f64", "cache_type_k: input should be 'f32', 'f16'"),
        ("vllm", "gpu_memory_utilization", 0, "gpu_memory_utilization: input should be greater than 0"),
    ],
)
def test_an_argument_out_of_its_range_is_refused_with_what_would_be_right(
    engine: str, name: str, value: bool | int | float | str, words: str
) -> None:
    assert f"the {engine} settings are wrong: {words}" in fault(engine, **{name: value})


def test_an_argument_that_the_engine_does_not_have_is_refused_with_those_that_it_has() -> None:
    said = fault("llama.cpp", colour="red")
    assert "colour: extra inputs are not permitted" in said
    assert f"(it has {', '.join(BUILTIN['llama.cpp'].arguments)})" in said


STRUCTURED = BUILTIN["simulated"].model_copy(
    update={"arguments": {"names": Argument(type="list"), "limits": Argument(type="object")}}
)


def test_lists_and_objects_are_taken_where_the_profile_says_so() -> None:
    check_arguments(launch("simulated", names=["a", 1, None], limits={"image": {"most": 2}}), STRUCTURED)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("names", {"a": 1}, "names: input should be a valid list"),
        ("names", "a", "names: input should be a valid list"),
        ("limits", [1], "limits: input should be a valid dictionary"),
    ],
)
def test_another_shape_than_the_profile_names_is_refused(name: str, value: ArgumentValue, words: str) -> None:
    with pytest.raises(LoadFailed) as failed:
        check_arguments(launch("simulated", **{name: value}), STRUCTURED)
    assert words in failed.value.sentence


def test_a_list_is_refused_where_the_profile_names_a_plain_value() -> None:
    assert "dimensions: input should be a valid integer" in fault("simulated", dimensions=[1])


def test_an_argument_that_an_engine_needs_and_one_of_another_form_are_named() -> None:
    assert "engine_args.base_url is missing: the engine openai needs it" == fault("openai", model="m")
    said = fault("openai", **NEEDED["openai"] | {"key": "sk-private"})
    assert said.startswith("engine_args.key holds a value")
    assert "sk-private" not in said

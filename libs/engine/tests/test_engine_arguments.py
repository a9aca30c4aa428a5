"""What an engine can be told stands in its profile: the host checks it, the adapter reads it."""

from typing import Any

import pytest
from weft_contracts.engines import BUILTIN, Argument
from weft_contracts.facts.arguments import ArgumentValue
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
        values: dict[str, Any] = {
            "object": {},
            "list": [],
            "boolean": True,
            "integer": 7,
            "number": number,
            "text": (argument.choices or (words,))[0],
        }
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
    assert f"engine_args.{words}" in fault(engine, **{name: value})


def test_an_argument_that_the_engine_does_not_have_is_refused_with_those_that_it_has() -> None:
    said = fault("llama.cpp", colour="red")
    has = ", ".join(BUILTIN["llama.cpp"].arguments)
    assert said == f"engine_args.colour is no argument of the engine llama.cpp (it has {has})"


OBJECTS: dict[str, ArgumentValue] = {
    "hf_overrides": {
        "architectures": ["Qwen3ForSequenceClassification"],
        "classifier_from_token": ["no", "yes"],
        "rope_parameters": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768},
        "text_config": {"rope_theta": 1e6},
    },
    "override_generation_config": {"temperature": 0.6, "top_k": 20},
    "limit_mm_per_prompt": {"image": 0},
    "compilation_config": {
        "mode": 2,
        "backend": "eager",
        "cudagraph_mode": "FULL_DECODE_ONLY",
        "cudagraph_capture_sizes": [1, 2, 4],
        "custom_ops": ["none", "+rms_norm"],
        "pass_config": {"fuse_norm_quant": False},
    },
    "pooler_config": {"pooling_type": "LAST", "use_activation": False},
    "default_chat_template_kwargs": {"enable_thinking": False},
}


def test_vllm_takes_objects_and_hands_them_on_as_they_are() -> None:
    check_arguments(launch("vllm", **OBJECTS), BUILTIN["vllm"])
    handed_on = VllmSettings.of(launch("vllm", **OBJECTS)).handed_on
    assert {name: value for name, value in OBJECTS.items() if name != "default_chat_template_kwargs"} == handed_on


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("hf_overrides", {"auto_map": {"AutoModel": "evil.Model"}}, "hf_overrides.auto_map: extra inputs"),
        ("hf_overrides", {"architectures": ["../evil:Model"]}, "hf_overrides.architectures.0: string should match"),
        ("hf_overrides", {"text_config": {"_name_or_path": "/x"}}, "text_config._name_or_path: extra inputs"),
        ("hf_overrides", {"num_hidden_layers": 1}, "hf_overrides.num_hidden_layers: extra inputs"),
        ("hf_overrides", {"rope_parameters": {"rope_type": "a.b"}}, "rope_parameters.rope_type: string should match"),
        ("compilation_config", {"backend": "evil.backend"}, "compilation_config.backend: input should be 'eager'"),
        ("compilation_config", {"inductor_passes": {"post_grad": "evil.f"}}, "inductor_passes: extra inputs"),
        ("compilation_config", {"cache_dir": "/etc"}, "compilation_config.cache_dir: extra inputs"),
        ("compilation_config", {"debug_dump_path": "/etc"}, "compilation_config.debug_dump_path: extra inputs"),
        ("compilation_config", {"custom_ops": ["evil.op"]}, "compilation_config.custom_ops.0: string should match"),
        ("compilation_config", {"mode": "3x"}, "compilation_config.mode: input should be a valid integer"),
        ("override_generation_config", {"temperature": 9}, "temperature: input should be less than or equal to 2"),
        ("override_generation_config", {"bad_words": ["x"]}, "override_generation_config.bad_words: extra inputs"),
        ("limit_mm_per_prompt", {"image": -1}, "limit_mm_per_prompt.image: input should be greater than or equal"),
        ("limit_mm_per_prompt", {"file": 1}, "limit_mm_per_prompt.file"),
        ("pooler_config", {"task": "plugin"}, "pooler_config.task: extra inputs"),
        ("default_chat_template_kwargs", {"chat_template": "{{ x }}"}, "chat_template is what the engine gives"),
    ],
)
def test_what_an_object_of_vllm_s_may_not_hold_is_refused_by_its_name(
    name: str, value: ArgumentValue, words: str
) -> None:
    given = launch("vllm", **{name: value})
    check_arguments(given, BUILTIN["vllm"])  # an object it is
    with pytest.raises(LoadFailed) as failed:
        VllmSettings.of(given)
    assert failed.value.permanent
    assert words in failed.value.sentence


@pytest.mark.parametrize(
    "name",
    [
        "trust_remote_code",
        "worker_cls",
        "worker_extension_cls",
        "logits_processors",
        "logits_processor_pattern",
        "tool_parser_plugin",
        "reasoning_parser_plugin",
        "io_processor_plugin",
        "kv_transfer_config",
        "additional_config",
        "structured_outputs_config",
        "hf_config_path",
        "tokenizer",
        "download_dir",
        "model_loader_extra_config",
        "scheduler_cls",
        "distributed_executor_backend",
        "mm_processor_kwargs",
    ],
)
def test_what_names_code_to_load_is_no_argument_of_vllm_s_profile(name: str) -> None:
    value: ArgumentValue = {"a": "evil.module:Class"}
    assert f"engine_args.{name} is no argument of the engine vllm" in fault("vllm", **{name: value})


def test_no_tokenizer_of_one_s_own_is_taken() -> None:
    assert "tokenizer_mode: input should be 'auto'" in fault("vllm", tokenizer_mode="custom")


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

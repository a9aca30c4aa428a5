"""Profiles: what is known of the engines that Weft comes with."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from weft_contracts.engines import BUILTIN, EngineProfile, FileFormat, reading
from weft_contracts.facts.inspection import Requested
from weft_contracts.facts.machine import Reported
from weft_contracts.facts.values import ENGINE_NAME, Backend, EngineName, Hardware


@pytest.mark.parametrize(("format", "engine"), [("gguf", "llama.cpp"), ("safetensors", "vllm"), (None, "simulated")])
def test_what_is_given_says_which_engine_loads_it(format: FileFormat | None, engine: str) -> None:
    assert engine == reading(format).name


def test_where_no_engine_loads_a_format_that_is_an_error() -> None:
    with pytest.raises(KeyError, match="no engine loads gguf"):
        reading("gguf", {})


@pytest.mark.parametrize("profile", BUILTIN.values(), ids=BUILTIN)
def test_a_profile_comes_back_from_json_with_its_digest(profile: EngineProfile) -> None:
    again = EngineProfile.model_validate(json.loads(profile.model_dump_json()))
    assert (profile, profile.digest) == (again, again.digest)
    other = profile.model_copy(update={"resumes_greedy": not profile.resumes_greedy})
    assert profile.digest != other.digest


@given(st.from_regex(ENGINE_NAME, fullmatch=True))
def test_any_engine_may_be_named_in_a_fact(name: str) -> None:
    assert name == Requested(source="path:/m", engine=name).engine


@pytest.mark.parametrize("name", ["", "LLaMA", "a b", "a\n", ".a", "-a", "a" * 41, "a/b", "é"])
def test_a_name_of_another_form_is_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter[str](EngineName).validate_python(name)


def test_facts_that_name_a_built_in_engine_are_written_as_before() -> None:
    body = '{"type":"requested","v":1,"source":"path:/m","engine":"llama.cpp"}'
    assert body == Requested.model_validate_json(body).model_dump_json()


def test_a_node_reports_no_more_engines_than_it_may_have_labels_for() -> None:
    backends = tuple(Backend(engine=f"e{number}", version="1", vendors=("cpu",)) for number in range(65))
    hardware = Hardware(cpus=1, memory=1)
    said = Reported(hardware=hardware, backends=backends[:64], builtins=(), agent_version="1")
    assert 64 == len(said.backends)
    with pytest.raises(ValidationError, match="at most 64 items"):
        Reported(hardware=hardware, backends=backends, builtins=(), agent_version="1")

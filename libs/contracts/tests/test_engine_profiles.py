"""Profiles: what is known of the engines that Weft comes with."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from weft_contracts.engines import (
    BUILTIN,
    EARLIER,
    Argument,
    ArgumentClaim,
    EngineProfile,
    FileFormat,
    HeaderClaim,
    Install,
    builtin,
    is_of,
    reading,
)
from weft_contracts.engines.faults import fault_of_profile
from weft_contracts.facts.inspection import Requested
from weft_contracts.facts.machine import Reported
from weft_contracts.facts.values import ENGINE_NAME, Backend, EngineName, Hardware

PROFILE = EngineProfile(
    name="told",
    serves=("chat",),
    formats=("gguf",),
    vendors=("cpu",),
    claim=HeaderClaim(slack=0, overhead=0, cpu_overhead=0),
    install=Install(package="weft-told"),
)


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


REPORTED = {
    "llama.cpp": ("5e961dfa484fa051", "b12dc09c47206844", "9bfadb0a5506924d", "a68aea8dac69a0a4", "477e5150bd5b3fcc"),
    "vllm": ("b512655f5c950b66", "2b3f57aa0e1e36c2", "d6703e9b1ba4865b"),
    "simulated": (
        "7c2905e49796334e",
        "5554fe07cdb7a856",
    ),
    "openai": ("b08e10d214613c7a", "8eb36c7fc066425f"),
}
"""Every digest that a release's workers have reported of a built-in engine, the present one last."""


def test_workers_of_earlier_releases_are_known_by_the_digests_that_they_report() -> None:
    known = {name: (*EARLIER.get(name, ()), profile.digest) for name, profile in BUILTIN.items()}
    assert REPORTED == known, "a profile was changed: put the digest that it had into EARLIER, and the new one here"


def test_an_earlier_digest_of_a_built_in_engine_is_taken_and_an_unknown_one_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    profile = BUILTIN["llama.cpp"]
    backend = Backend(engine="llama.cpp", version="1", vendors=("cpu",), profile="earlier")
    assert not is_of(backend, profile)
    monkeypatch.setattr(builtin, "EARLIER", {"llama.cpp": ("earlier",)})
    assert is_of(backend, profile)
    assert not is_of(backend, BUILTIN["vllm"])


def test_a_number_that_is_written_otherwise_is_the_same_profile() -> None:
    whole, broken = (
        PROFILE.model_copy(update={"arguments": {"x": Argument(type="number", least=least)}}) for least in (1, 1.0)
    )
    assert (whole, whole.digest) == (broken, broken.digest)
    assert PROFILE.digest != whole.digest


@pytest.mark.parametrize("profile", BUILTIN.values(), ids=BUILTIN)
def test_nothing_is_wrong_with_a_built_in_profile(profile: EngineProfile) -> None:
    assert fault_of_profile(profile) is None


def _argument(**fields: object) -> dict[str, object]:
    return {"arguments": {"x": Argument.model_validate(fields)}}


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"serves": ()}, "serves is empty: name at least one"),
        ({"vendors": ()}, "vendors is empty: name at least one"),
        ({"vendors": ("cpu", "cpu")}, "vendors names something twice: name each once"),
        ({"formats": ()}, "claim.formula is header, which reads a file's header, and formats is empty"),
        (
            {"claim": HeaderClaim(slack=0, overhead=0, cpu_overhead=0, share_argument="x")},
            "claim.share_argument is x: it must be one of arguments, of type number",
        ),
        (
            {"claim": HeaderClaim(slack=0, overhead=0, cpu_overhead=0, layers_argument="x")},
            "claim.layers_argument is x: it must be one of arguments, of type integer",
        ),
        (
            {"claim": ArgumentClaim(argument="x", default=1)},
            "claim.argument is x: it must be one of arguments, of type integer",
        ),
        (
            {"claim": ArgumentClaim(argument="x", default=0), **_argument(type="integer")},
            "claim.default is 0: say how many bytes",
        ),
        (_argument(type="text", least=1), "arguments.x: least, most and above are for integer and number"),
        (_argument(type="integer", choices=("a",)), "arguments.x: choices are for text, the type is integer"),
        (_argument(type="integer", least=3, most=2), "arguments.x: least is 3 and most is 2: nothing lies between"),
        (_argument(type="number", above=2, most=2), "arguments.x: above is 2 and most is 2: nothing lies between"),
        (_argument(type="text", choices=("\0",)), "arguments.x: a choice holds characters that can't be printed"),
        ({"install": Install(package="")}, "install.package is empty"),
        ({"install": Install(package="a", also=("",))}, "install.also has an empty name"),
        ({"install": Install(package="a\0")}, "install.package holds characters that can't be printed"),
        (_argument(type="text", choices=("c" * 16_384,)), "bytes as JSON, 16384 are allowed"),
    ],
)
def test_what_is_wrong_with_a_profile_is_named_with_what_would_be_right(changed: dict[str, object], fault: str) -> None:
    assert fault_of_profile(PROFILE) is None
    assert fault in (fault_of_profile(PROFILE.model_copy(update=changed)) or "nothing")


@pytest.mark.parametrize("above", [0, 1])
def test_one_value_between_its_bounds_is_enough(above: int) -> None:
    argument = Argument(type="integer", least=1, above=above, most=1)
    fault = fault_of_profile(PROFILE.model_copy(update={"arguments": {"x": argument}}))
    assert (fault is None) == (above == 0)


def test_a_report_of_an_older_worker_is_read_and_one_with_a_digest_says_it() -> None:
    older = Backend.model_validate_json('{"engine":"llama.cpp","version":"1","vendors":["cpu"]}')
    assert "" == older.profile
    with pytest.raises(ValidationError, match="at most 64 characters"):
        Backend(engine="llama.cpp", version="1", vendors=("cpu",), profile="d" * 65)


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

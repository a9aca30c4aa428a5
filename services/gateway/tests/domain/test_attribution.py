"""What a client says of a request for its own books: within its limits, in no Submit, and noted only by a setting."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from weft_gateway.domain.attribution import Attribution, log_attributes
from weft_gateway.domain.openai.chat import check_chat
from weft_gateway.domain.openai.completions import check_completion
from weft_gateway.domain.openai.embeddings import check_embedding
from weft_gateway.domain.refused import Refused
from weft_gateway.domain.submission import submission
from weft_gateway.settings import GatewaySettings
from weft_runtime.settings import BadSetting

SAID: dict[str, Any] = {
    "metadata": {"run": "7"},
    "user": "ann@example.org",
    "safety_identifier": "s" * 128,
    "prompt_cache_key": "k" * 512,
}


def chat(**fields: Any) -> bytes:
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]} | fields).encode()


def test_an_engine_hears_nothing_of_it() -> None:
    asked = check_chat(chat(**SAID, service_tier="default", store=False))
    assert Attribution((("run", "7"),), *list(SAID.values())[1:]) == asked.attribution
    assert submission(check_chat(chat()), "c") == submission(asked, "c")


WRONG: list[tuple[str, Any]] = [
    ("metadata", {str(i): "" for i in range(17)}),
    ("metadata", {"n" * 65: ""}),
    ("metadata", {"n": "v" * 513}),
    ("metadata", {"n": 1}),
    ("metadata", ["n"]),
    ("user", "u" * 513),
    ("user", 7),
    ("safety_identifier", "s" * 129),
    ("prompt_cache_key", "k" * 513),
    ("service_tier", "flex"),
    ("service_tier", "priority"),
    ("service_tier", 1),
    ("store", True),
    ("messages[0].name", None),
]


@pytest.mark.parametrize(("field", "value"), WRONG)
def test_what_is_beyond_its_limit_is_refused_by_its_field(field: str, value: Any) -> None:
    fields = {field: value} if "." not in field else {"messages": [{"role": "user", "content": "x", "name": "n" * 65}]}
    with pytest.raises(Refused) as refused:
        check_chat(chat(**fields))
    assert (400, field) == (refused.value.status, refused.value.param)
    assert f"`{field}`" in refused.value.sentence


def test_what_reaches_its_limit_is_taken() -> None:
    pairs = {"n" * 64: "v" * 512, **{str(i): "" for i in range(15)}}
    said = check_chat(chat(**SAID | {"metadata": pairs, "user": "u" * 512})).attribution
    assert (tuple(pairs.items()), "u" * 512) == (said.metadata, said.user)


def test_the_other_routes_check_their_user_too() -> None:
    for check, body in (
        (check_completion, {"model": "m", "prompt": "x"}),
        (check_embedding, {"model": "m", "input": "x"}),
    ):
        assert "me" == check(json.dumps(body | {"user": "me"}).encode()).attribution.user
        with pytest.raises(Refused, match="at most 512") as refused:
            check(json.dumps(body | {"user": "u" * 513}).encode())
        assert "user" == refused.value.param


def test_persons_are_noted_as_digests_that_only_the_same_key_makes_again() -> None:
    said = check_chat(chat(**SAID)).attribution
    found = log_attributes(said, b"1" * 32)
    assert {"metadata.run": "7", "prompt_cache_key": "k" * 512}.items() <= found.items()
    assert {"metadata.run", "prompt_cache_key", "user", "safety_identifier"} == set(found)
    assert not any(SAID[field] in json.dumps(found) for field in ("user", "safety_identifier"))
    assert found == log_attributes(said, b"1" * 32)
    assert found["user"] != log_attributes(said, b"2" * 32)["user"]
    assert {} == log_attributes(Attribution(), b"1" * 32)


def test_the_key_of_digests_is_a_file_or_drawn_and_none_where_nothing_is_noted(tmp_path: Path) -> None:
    file = tmp_path / "key"
    assert GatewaySettings().key_of_digests() is None
    assert (
        GatewaySettings(log_attribution=True).key_of_digests() != GatewaySettings(log_attribution=True).key_of_digests()
    )
    for wrong, words in ((None, "can't be read"), (b"short", "has 5 bytes")):
        if wrong is not None:
            file.write_bytes(wrong)
        with pytest.raises(BadSetting, match=words):
            GatewaySettings(log_attribution=True, attribution_key=file).check()
    file.write_bytes(b"x" * 32)
    assert b"x" * 32 == GatewaySettings(log_attribution=True, attribution_key=file).key_of_digests()


def test_the_tier_is_answered_where_it_was_asked_for() -> None:
    assert "default" == msgspec.structs.asdict(check_chat(chat(service_tier="auto")))["service_tier"]
    assert "" == check_chat(chat()).service_tier

"""How a refusal is told: OpenAI's error object on its routes, a problem body elsewhere."""

import json

import pytest
from weft_gateway.domain.problems import openai_error, phrase, problem
from weft_gateway.domain.refused import Refused


@pytest.mark.parametrize(
    ("status", "type"),
    [
        (400, "invalid_request_error"),
        (401, "invalid_request_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (415, "invalid_request_error"),
        (429, "overloaded_error"),
        (499, "invalid_request_error"),
        (500, "server_error"),
        (503, "server_error"),
        (529, "overloaded_error"),
    ],
)
def test_each_status_has_openais_word(status: int, type: str) -> None:
    assert type == Refused(status, "No.").type


@pytest.mark.parametrize(
    ("status", "words"), [(404, "Not Found"), (529, "All Busy"), (503, "Service Unavailable"), (599, "Error")]
)
def test_each_status_has_a_title(status: int, words: str) -> None:
    assert words == phrase(status)


def test_openais_error_object_says_what_is_wrong_and_where() -> None:
    refused = Refused(400, "`n` is 0.", param="n", code="out_of_range", extra={"more": "x"})
    error = {"message": "`n` is 0.", "type": "invalid_request_error", "param": "n", "code": "out_of_range"}
    assert {"error": error} == json.loads(openai_error(refused))


def test_a_problem_body_has_a_field_and_a_code_where_there_are_any() -> None:
    plain = {"type": "about:blank", "title": "Conflict", "status": 409, "detail": "No."}
    assert plain == json.loads(problem(Refused(409, "No.")))
    told = Refused(409, "No.", param="name", code="taken", extra={"request": "r-1"})
    assert plain | {"param": "name", "code": "taken", "request": "r-1"} == json.loads(problem(told))

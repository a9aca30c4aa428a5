"""Every refusal of a field says which one: over all that the code of the OpenAI routes can refuse."""

import ast
from pathlib import Path

import pytest
import weft_gateway
from weft_contracts.gen import session_pb2 as pb
from weft_gateway.domain.inference_request import Constraint, InferenceRequest, Message
from weft_gateway.inbound.inference.faults import refusal_for

ROOT = Path(weft_gateway.__file__).parent
ROUTES = [
    "domain/openai",
    "domain/routing",
    "domain/ability.py",
    "domain/attribution.py",
    "domain/choices.py",
    "inbound/inference",
    "inbound/openai/hot_routes.py",
]
NO_FIELD = {"malformed_json"}
"""Codes of bodies that have no fields."""


def refusals() -> list[tuple[str, dict[str, str]]]:
    """Of each refusal with status 400 in the code: where it is, and its keywords as code."""
    found: list[tuple[str, dict[str, str]]] = []
    for route in ROUTES:
        place = ROOT / route
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            for call in ast.walk(ast.parse(file.read_text())):
                if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Refused"):
                    continue
                if ast.unparse(call.args[0]) in ("400", "404"):
                    keywords = {each.arg or "": ast.unparse(each.value) for each in call.keywords}
                    found.append((f"{file.name}:{call.lineno}", keywords))
    return found


def test_every_refusal_of_a_request_names_the_field_at_fault() -> None:
    found = refusals()
    assert len(found) > 30
    silent = [at for at, given in found if "param" not in given and given.get("code", "").strip("'") not in NO_FIELD]
    assert [] == silent


CHAT = InferenceRequest(model="m", chat=(Message("user", "hi"),), constraint=Constraint("{}"))
CALLS = InferenceRequest(model="m", chat=(Message("user", "hi"),), constraint=Constraint("{}"), calls=("look",))
TEXT = InferenceRequest(model="m", text="once")


@pytest.mark.parametrize(
    ("asked", "field", "param"),
    [
        (CHAT, "constraint", "response_format"),
        (CALLS, "constraint", "tools"),
        (CHAT, "bias", "logit_bias"),
        (CHAT, "scores", "logprobs"),
        (CHAT, "prompt", "messages"),
        (TEXT, "prompt", "prompt"),
        (TEXT, "top_p", "top_p"),
        (TEXT, "ignore_end", "ignore_eos"),
        (TEXT, "", None),
    ],
)
def test_an_engines_refusal_names_the_clients_own_field(asked: InferenceRequest, field: str, param: str | None) -> None:
    output = pb.Output(finish=pb.FINISH_ERROR, fault=pb.FAULT_BAD_REQUEST, error="no", field=field)
    refused = refusal_for(output, asked)
    assert refused is not None
    assert (400, param, "No.") == (refused.status, refused.param, refused.sentence)


def test_what_an_engine_of_an_older_release_finds_too_long_is_the_prompt() -> None:
    output = pb.Output(finish=pb.FINISH_ERROR, fault=pb.FAULT_CONTEXT_EXCEEDED, error="no")
    assert ["messages", "prompt"] == [found.param for asked in (CHAT, TEXT) if (found := refusal_for(output, asked))]

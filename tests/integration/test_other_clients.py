"""Other people's clients with their defaults against the built-in model, by the Responses API: a second turn too.

The packages come from the registries into ignored folders; see clients/installing.py.
"""

import os
from collections.abc import Callable
from typing import Any

import pytest
from weft_testing.story import MeshUnderTest

from .clients import installing

pytestmark = pytest.mark.slow

FRANCE = "The capital of France is Paris."
PERU = "The capital of Peru is Lima."


def said(mesh: MeshUnderTest, run: Callable[[str, str], dict[str, Any]], script: str) -> dict[str, Any]:
    """What a client's script found. Where its packages can't be had it is skipped; under CI it fails."""
    try:
        return run(script, f"{mesh.url}/v1")
    except installing.NotInstalled as error:
        if os.environ.get("CI"):
            pytest.fail(f"{error}")
        pytest.skip(f"the client's packages can't be had: {error}")


def check_common(found: dict[str, Any]) -> None:
    """What every client must get: answers, a second turn with the first one's, an object that fits its schema."""
    assert (FRANCE, FRANCE, PERU) == (found["whole"], found["streamed"], found["turn"])
    assert isinstance(found["parsed"]["island"], bool)
    assert 1 <= found["parsed"]["rank"] <= 99


def check_call(call: Any) -> None:
    name, arguments = call
    assert "weather" == name
    assert arguments["city"] in ("Paris", "Tokyo")


@pytest.mark.sabotage("empty-responses")
def test_openais_client_for_javascript(calm_mesh: MeshUnderTest) -> None:
    found = said(calm_mesh, installing.javascript, "official.mjs")
    check_common(found)
    check_call(found["call"])
    assert found["after"]
    assert found["usage"]["total_tokens"] == found["usage"]["input_tokens"] + found["usage"]["output_tokens"]
    assert ["response.created", "response.in_progress", "response.output_item.added"] == found["events"][:3]
    assert "response.completed" == found["events"][-1]
    assert "`store` is not supported" in found["stored"]
    assert "`previous_response_id` is not supported" in found["previous"]
    assert "404 Responses are not stored here" in found["kept"]


@pytest.mark.sabotage("empty-responses")
def test_vercels_default_provider(calm_mesh: MeshUnderTest) -> None:
    found = said(calm_mesh, installing.javascript, "vercel.mjs")
    check_common(found)
    assert ("stop", "stop") == (found["finish"], found["streamedFinish"])
    assert all(count > 0 for count in found["usage"])
    # a tool's result goes back by itself
    [call] = found["call"]
    check_call(call)
    assert [f"sunny in {call[1]['city']}"] == found["result"]
    assert ["tool-calls", "stop"] == found["steps"]
    # a turn that refers to what was to be stored names the setting that stops it, which is what `turn` was asked with
    assert found["refused"].startswith("400 ")
    assert "providerOptions.openai.store=false" in found["refused"]


@pytest.mark.sabotage("empty-responses")
def test_langchain_for_javascript(calm_mesh: MeshUnderTest) -> None:
    found = said(calm_mesh, installing.javascript, "langchain.mjs")
    check_common(found)
    check_call(found["call"])
    assert found["after"]


@pytest.mark.sabotage("empty-responses")
def test_langchain_for_python(calm_mesh: MeshUnderTest) -> None:
    found = said(calm_mesh, installing.python, "langchain_client.py")
    check_common(found)
    check_call(found["call"])
    assert found["after"]
    assert "use_previous_response_id=False" in found["refused"]

"""What a client gets of a model whose engine tells thoughts and calls of tools apart, whole and streamed."""

import json
from typing import Any

from weft_testing.story import MeshUnderTest

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [
    {"type": "function", "function": {"name": "weather", "parameters": CITY}},
    {"type": "function", "function": {"name": "time", "parameters": {"type": "object"}}},
]
CALLED: list[tuple[str, dict[str, str]]] = [("weather", {"city": "Paris"}), ("time", {})]


def thoughts_stand_apart(mesh: MeshUnderTest, model: str) -> None:
    """Of the model of `weft_testing.scripted_model`."""
    told = ("Paris it is.", "The answer is Paris.")
    message = whole(mesh, model)
    assert told == (message["reasoning_content"], message["content"])
    pieces = streamed(mesh, model)
    assert told == tuple(
        "".join(each.get(field) or "" for each in pieces) for field in ("reasoning_content", "content")
    )
    assert len(pieces) > 3, "it streams"
    straight = whole(mesh, model, chat_template_kwargs={"thinking": False})
    assert ("Straight: Paris.", None) == (straight["content"], straight.get("reasoning_content"))


def calls_stand_apart(mesh: MeshUnderTest, model: str) -> None:
    """Of the same one, as a client that offers tools gets them."""
    calls = whole(mesh, model, tools=TOOLS)["tool_calls"]
    assert CALLED == [(each["function"]["name"], json.loads(each["function"]["arguments"])) for each in calls]
    names, arguments = dict[int, str](), dict[int, str]()
    for piece in streamed(mesh, model, tools=TOOLS):
        for call in piece.get("tool_calls") or ():
            names[call["index"]] = names.get(call["index"], "") + (call["function"].get("name") or "")
            arguments[call["index"]] = arguments.get(call["index"], "") + (call["function"].get("arguments") or "")
    assert CALLED == [(names[at], json.loads(arguments[at])) for at in sorted(names)]


def whole(mesh: MeshUnderTest, model: str, **fields: Any) -> dict[str, Any]:
    """The message of a whole answer."""
    said = mesh.chat("which?", model, **fields)
    assert 200 == said.status_code, said.text
    return said.json()["choices"][0]["message"]


def streamed(mesh: MeshUnderTest, model: str, **fields: Any) -> list[dict[str, Any]]:
    """What each event of a streamed answer adds to its message."""
    said = mesh.chat("which?", model, stream=True, **fields)
    assert 200 == said.status_code, said.text
    events = [line[6:] for line in said.text.splitlines() if line.startswith("data: ")]
    assert "[DONE]" == events.pop()
    return [choice["delta"] for event in events for choice in json.loads(event)["choices"]]

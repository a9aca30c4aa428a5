"""Chats that llama.cpp's templates are rendered with, here and there."""

from typing import Any, Final

from weft_prompts.templates import Chat

_SYSTEM: Final = {"role": "system", "content": "Be <brief>."}
_USER: Final = {"role": "user", "content": "Hi & bye "}
_ANSWER: Final = {"role": "assistant", "content": "<think>\nhm\n</think>\n\nYes."}
_MORE: Final = {"role": "user", "content": "And?"}
_TOOLS: Final[list[dict[str, Any]]] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": 'Weather <now> & "then"',
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "é"},
                    "n": {"type": "integer", "enum": [1, 2]},
                },
                "required": ["city"],
            },
        },
    }
]
_CALL: Final = {
    "role": "assistant",
    "content": "Let me see.",
    "tool_calls": [
        {"id": "call00001", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Köln"}}}
    ],
}
_RESULT: Final = {"role": "tool", "tool_call_id": "call00001", "name": "get_weather", "content": "12 °C"}
_PARTS: Final = {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}
_THINKS: Final = {"enable_thinking": True}
"""llama.cpp says so itself where nobody says otherwise."""

CHATS: Final = {
    "user": Chat([_USER], extra=_THINKS),
    "system": Chat([_SYSTEM, _USER], extra=_THINKS),
    "turns": Chat([_SYSTEM, _USER, _ANSWER, _MORE], extra=_THINKS),
    "whole": Chat([_USER, _ANSWER, _MORE], add_generation_prompt=False, extra=_THINKS),
    "parts": Chat([_PARTS], extra=_THINKS),
    "tools": Chat([_SYSTEM, _USER], tools=_TOOLS, extra=_THINKS),
    "calls": Chat([_USER, _CALL, _RESULT], tools=_TOOLS, extra=_THINKS),
}

"""`weft chat`: one question, or a conversation, streamed as it is made."""

import json
import sys
from pathlib import Path
from typing import Any

from weft_cli import where
from weft_cli.client import Gateway, Refused, Unreachable
from weft_cli.embedded.builtin import NAME as BUILTIN
from weft_cli.failure import Failure

_TOY = "tiny is a toy: it knows its table of capitals, elements and small sums, and says so where it doesn't."
_ANSWER_S = 300.0


def run(
    folder: Path | None,
    url: str | None,
    model: str | None,
    *,
    message: str | None,
    system: str | None,
    max_tokens: int | None,
) -> None:
    """Ask `message`, or what is typed until the end of the input."""
    gateway = where.gateway(folder, url, timeout_s=_ANSWER_S)
    name = model or _first_model(gateway)
    turns: list[dict[str, str]] = [{"role": "system", "content": system}] if system else []
    more: dict[str, Any] = {"max_tokens": max_tokens} if max_tokens else {}
    if message is not None:
        _answer(gateway, name, [*turns, {"role": "user", "content": message}], more)
        return
    talking = sys.stdin.isatty()
    if talking:
        print(f"Talking to {name} at {gateway.url}. An empty line or Ctrl-D ends it.")
        if name == BUILTIN:
            print(_TOY)
    while (text := _typed(talking)) is not None:
        turns.append({"role": "user", "content": text})
        try:
            turns.append({"role": "assistant", "content": _answer(gateway, name, turns, more)})
        except (Refused, Unreachable) as e:
            if not talking:
                raise
            print(f"weft: {e}", file=sys.stderr)
            turns.pop()


def _typed(talking: bool) -> str | None:
    """The next line that a person typed; None at the end."""
    try:
        text = input("> " if talking else "").strip()
    except EOFError:
        return None
    except KeyboardInterrupt:
        print()
        return None
    return text or None


def _answer(gateway: Gateway, model: str, turns: list[dict[str, str]], more: dict[str, Any]) -> str:
    """Stream an answer to stdout and return its text. Raises Failure where it breaks off."""
    body = {"model": model, "messages": turns, "stream": True, **more}
    parts: list[str] = []
    done = False
    for event, data in gateway.stream("POST", "/v1/chat/completions", body):
        if data == "[DONE]":
            done = True
            break
        chunk: dict[str, Any] = json.loads(data)
        if event == "error" or "error" in chunk:
            print()
            raise Failure(f"the answer broke off: {chunk.get('error', chunk).get('message', data)}")
        for choice in chunk.get("choices", []):
            if text := choice.get("delta", {}).get("content"):
                parts.append(text)
                print(text, end="", flush=True)
    print()
    if not done:
        raise Failure("the answer broke off: the gateway ended the connection")
    return "".join(parts)


def _first_model(gateway: Gateway) -> str:
    names: list[str] = [each["id"] for each in gateway.get("/v1/models").get("data", [])]
    if not names:
        raise Failure("the mesh has no model; deploy one: weft deploy tiny")
    return BUILTIN if BUILTIN in names else names[0]

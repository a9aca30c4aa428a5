"""The built-in model: deployed once into a new state, so that a fresh mesh has something to answer with."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

from weft_cli import api
from weft_cli.client import Gateway, Refused, Unreachable
from weft_cli.embedded.state import write_private
from weft_cli.embedded.voice import Voice
from weft_cli.failure import Failure

NAME = "tiny"
IDEMPOTENCY_KEY = "weft-up-builtin-tiny"
"""Always the same: an `up` that was killed between asking and noting it doesn't ask for a second model."""
QUESTION = "What is the capital of France?"
_READY_S = 120.0
_LOOK_S = 0.1
_RETRIES_S = 30.0


async def serve_something(url: str, marker: Path, voice: Voice, *, deploy: bool = True) -> str | None:
    """Deploy the built-in model into a state that never had it, and wait until every wanted model is served.

    Returns the name of a model that answers, the built-in one if it does; None if the mesh has no model.
    Raises Failure if the built-in model, being deployed now, can't be served.
    """
    gateway = Gateway(url, timeout_s=30.0)
    fresh = deploy and not await asyncio.to_thread(marker.exists)
    if fresh:
        await asyncio.to_thread(_deploy, gateway)
        write_private(marker, "the built-in model was deployed; remove this file to have it deployed again\n")
    deadline = time.monotonic() + _READY_S
    said = set[str]()
    while True:
        models = await asyncio.to_thread(_models, gateway)
        for model in models or ():
            if model.ready and model.name not in said:
                voice.part(f"model {model.name}", f"answers from {model.ready} of {model.wanted} replicas")
                said.add(model.name)
            elif model.given_up and model.name not in said:
                voice.part(f"model {model.name}", f"{model.state}: {model.reason}")
                said.add(model.name)
                if fresh and model.name == NAME:
                    raise Failure(f"the built-in model is {model.state}: {model.reason}")
        if models is not None and all(model.name in said or not model.wanted for model in models):
            break
        if time.monotonic() >= deadline:
            waiting = ", ".join(model.name for model in models or () if model.name not in said)
            if fresh:
                raise Failure(f"the built-in model is not ready after {_READY_S:g} s: see `weft status`")
            voice.line(f"  not ready after {_READY_S:g} s: {waiting}; the mesh goes on trying: see `weft status`")
            break
        await asyncio.sleep(_LOOK_S)
    ready = [model.name for model in models or () if model.ready]
    return NAME if NAME in ready else (ready[0] if ready else None)


def curl(url: str, model: str) -> str:
    """A line to paste that asks the model a question."""
    body: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": QUESTION}]}
    return f"curl -s {url}/v1/chat/completions -H 'Content-Type: application/json' -d '{json.dumps(body)}'"


def _deploy(gateway: Gateway) -> None:
    """Ask for the model; a gateway that is busy coming up is asked again."""
    deadline = time.monotonic() + _RETRIES_S
    while True:
        try:
            api.deploy(gateway, NAME, api.spec_of(NAME), idempotency_key=IDEMPOTENCY_KEY)
            return
        except (Refused, Unreachable) as e:
            passing = isinstance(e, Unreachable) or e.status in (429, 503)
            if not passing or time.monotonic() >= deadline:
                raise Failure(f"the built-in model could not be deployed: {e}") from e
            time.sleep(0.3)


def _models(gateway: Gateway) -> tuple[api.ModelRow, ...] | None:
    try:
        return api.snapshot(gateway).models
    except (Refused, Unreachable):
        return None

"""The built-in model: deployed once into a new state, so that a fresh mesh has something to answer with."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

from weft_client import api
from weft_client.failure import Failure
from weft_client.gateway import Gateway, Refused, Unreachable

from weft_embedded.launcher_output import LauncherOutput
from weft_embedded.state import write_private

NAME = "tiny"
IDEMPOTENCY_KEY = "weft-up-builtin-tiny"
"""Always the same: an `up` that was killed between asking and noting it doesn't ask for a second model."""
QUESTION = "What is the capital of France?"
_FRESH_READY_S = 120.0
_READY_S = 30.0
"""For models that the mesh already had: it is up without them, too."""
_SAY_AFTER_S = 3.0
_LOOK_S = 0.1
_RETRIES_S = 30.0


async def serve_something(gateway: Gateway, marker: Path, output: LauncherOutput, *, deploy: bool = True) -> str | None:
    """Deploy the built-in model into a state that never had it, and wait until every wanted model is served.

    Returns the name of a model that answers, the built-in one if it does; None if there is none. The wait is bounded.
    Raises Failure if the built-in model, being deployed now, can't be served.
    """
    fresh = deploy and not await asyncio.to_thread(marker.exists)
    if fresh:
        await asyncio.to_thread(_deploy, gateway)
        write_private(marker, "the built-in model was deployed; remove this file to have it deployed again\n")
    found = await (_settled(gateway, output, _FRESH_READY_S, NAME) if fresh else _settled(gateway, output, _READY_S))
    builtin = found.model(NAME) if found is not None else None
    if fresh and (builtin is None or not builtin.ready):
        why = f"{builtin.state} {builtin.reason}" if builtin is not None else "it is not in the list of models"
        raise Failure(f"the built-in model can't be served: {why}")
    for problem in found.problems if found is not None else ():
        output.line(f"  {problem}")
    ready = [model.name for model in (found.models if found is not None else ()) if model.ready]
    return NAME if NAME in ready else (ready[0] if ready else None)


async def _settled(gateway: Gateway, output: LauncherOutput, bound_s: float, fresh: str = "") -> api.Snapshot | None:
    """Wait until every model answers, is given up or wants no replica, and say so; the last look, None without one.

    The model `fresh` was just accepted: that it has no replica yet means nothing.
    """
    began, said, waiting_said = time.monotonic(), set[str](), False
    while True:
        found = await asyncio.to_thread(_look, gateway)
        for model in found.models if found is not None else ():
            if model.name not in said and model.ready:
                output.part(f"model {model.name}", f"answers from {model.ready} of {model.wanted} replicas")
                said.add(model.name)
            elif model.name not in said and (model.given_up or not (model.wanted or model.name == fresh)):
                said.add(model.name)
        waiting = [model.name for model in found.models if model.name not in said] if found is not None else ["?"]
        took = time.monotonic() - began
        if not waiting or took >= bound_s:
            if waiting:
                names = ", ".join(waiting)
                output.line(f"  not ready after {bound_s:g} s: {names}; the mesh goes on trying: see `weft status`")
            return found
        if took >= _SAY_AFTER_S and not waiting_said:
            output.line(f"  waiting for {', '.join(waiting)}, for at most {bound_s:g} s")
            waiting_said = True
        await asyncio.sleep(_LOOK_S)


def curl(url: str, model: str, *, with_key: bool = False, authority: Path | None = None) -> str:
    """A line to paste that asks the model a question. `authority`: the file of the mesh's own, over TLS."""
    body: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": QUESTION}]}
    key = ' -H "Authorization: Bearer $WEFT_API_KEY"' if with_key else ""
    asked = f"curl -s{f' --cacert {authority}' if authority is not None else ''} {url}"
    return f"{asked}/v1/chat/completions{key} -H 'Content-Type: application/json' -d '{json.dumps(body)}'"


def _deploy(gateway: Gateway) -> None:
    """Ask for the model; a gateway that is busy coming up is asked again."""
    deadline = time.monotonic() + _RETRIES_S
    # on the processor, whose engine is there: for an accelerator one might have to be fetched or built first
    from weft_client.specs import spec_of  # of a state's life once: no later start of the launcher loads it

    spec = spec_of(NAME, engine_args={"gpu_layers": 0})
    while True:
        try:
            api.deploy(gateway, NAME, spec, idempotency_key=IDEMPOTENCY_KEY)
            return
        except (Refused, Unreachable) as e:
            passing = isinstance(e, Unreachable) or e.status in (429, 503)
            if not passing or time.monotonic() >= deadline:
                raise Failure(f"the built-in model could not be deployed: {e}") from e
            time.sleep(0.3)


def _look(gateway: Gateway) -> api.Snapshot | None:
    try:
        return api.snapshot(gateway)
    except (Refused, Unreachable):
        return None

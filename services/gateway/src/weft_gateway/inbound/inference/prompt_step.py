"""The step before routing: a request's prompt as token ids, where this gateway makes them, and whether it fits.

What is short is made at once. What is long is made in a thread, and routed after that.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Literal

from weft_dataplane.session_client import SessionClient
from weft_fleet import ModelView
from weft_prompts.templates.bounds import Bounds
from weft_prompts.templates.refusals import TemplateFailed, TemplateRefused
from weft_prompts.tokens.refusal import NoTokenizer
from weft_prompts.tokens.tokenizer import TextTooLong
from weft_runtime.logs import get_logger

from weft_gateway.domain.caller import Caller
from weft_gateway.domain.inference_request import InferenceRequest
from weft_gateway.domain.prompts.comparison import PromptIds
from weft_gateway.domain.prompts.fitting import check_fits
from weft_gateway.domain.prompts.rendering import SURELY_LONG, characters, only_engine_renders
from weft_gateway.domain.refused import Refused
from weft_gateway.domain.routing.endpoint_state import EndpointState
from weft_gateway.inbound.inference.in_flight_choice import InFlightChoice
from weft_gateway.inbound.inference.prompting import Prompting, PromptStanding
from weft_gateway.outbound.prompts.comparing import BOUNDS, SHORT_BOUNDS, chat_of
from weft_gateway.outbound.prompts.prompt_threads import ThreadsBusy

_log: Any = get_logger("weft.gateway.prompts")
SHORT: Final = 16_384
"""Characters of a prompt that is made on the event loop."""
_ENGINES = (TemplateFailed, TemplateRefused, NoTokenizer, TextTooLong, ThreadsBusy)
"""What leaves a prompt to the engine, which says in its own words what is wrong with it."""
Made = Literal["gateway", "engine", "refused"]
Route = Callable[[InFlightChoice, ModelView], None]


class PromptStep:
    """Makes prompts before requests are routed."""

    def __init__(self, prompting: Prompting, *, submits: bool, counted: Callable[[Made], None]) -> None:
        """`submits`: engines are sent ids wherever that can be; else only where a prompt had to be counted.

        `counted`: told who made each prompt.
        """
        self._prompting = prompting
        self._submits = submits
        self._counted = counted
        self._wanted: set[str] = set()
        self._making: set[asyncio.Task[None]] = set()

    def take(self, choices: Sequence[InFlightChoice], model: ModelView, caller: Caller, route: Route) -> None:
        """Route the choices of one request once its prompt is made, or refuse them. Raises nothing."""
        first = choices[0]
        one_prompt = len(choices) == first.request.n
        try:
            standing = self._standing(first.request, model) if one_prompt else None
            if standing is None:
                ids = None
            elif characters(first.request) > SHORT:
                self._later(choices, model, standing, caller, route)
                return
            else:
                try:
                    ids = self._ids(first.request, standing, caller, SHORT_BOUNDS)
                except TemplateRefused:
                    self._later(choices, model, standing, caller, route)
                    return
            self._made(choices, model, ids, standing, route)
        except _ENGINES:
            self._made(choices, model, None, None, route)
        except Exception:
            _log.exception("making a prompt failed", model=model.name)
            self._made(choices, model, None, None, route)

    def submitted(self, choice: InFlightChoice, state: EndpointState, session: SessionClient) -> Sequence[int]:
        """The ids that a replica is sent of a choice; empty: it is sent the prompt as it is."""
        prompting, endpoint, prompt = self._prompting, state.endpoint, choice.prompt
        model = prompting.model(endpoint.model)
        if model is None:
            return ()
        if prompt is None:
            if self._submits or model.id in self._wanted:
                prompting.met(model, endpoint, session)
            return ()
        if prompting.agrees(model, endpoint, prompt.card, prompt.way):
            return prompt.ids
        prompting.met(model, endpoint, session)
        return ()

    async def close(self) -> None:
        """Stop what is being made; its choices are refused by their dispatcher."""
        making = list(self._making)
        for task in making:
            task.cancel()
        await asyncio.gather(*making, return_exceptions=True)

    def _standing(self, request: InferenceRequest, model: ModelView) -> PromptStanding | None:
        """None where the engine makes this prompt. Raises Refused for ids that don't fit."""
        if only_engine_renders(request):
            return None
        if not self._submits:
            if characters(request) <= SURELY_LONG * model.serving.spec.context_tokens:
                return None
            if len(self._wanted) < _MOST_WANTED:
                self._wanted.add(model.id)
        standing = self._prompting.standing(model)
        if standing.prompts is None or (request.chat and not standing.chats):
            return None
        return standing

    def _ids(self, request: InferenceRequest, standing: PromptStanding, caller: Caller, bounds: Bounds) -> PromptIds:
        if request.chat:
            ids = self._prompting.chat_ids(standing, chat_of(request.chat), caller, bounds)
        else:
            ids = self._prompting.text_ids(standing, request.text or "", caller)
        return PromptIds(ids, standing.card, standing.way)

    def _later(
        self,
        choices: Sequence[InFlightChoice],
        model: ModelView,
        standing: PromptStanding,
        caller: Caller,
        route: Route,
    ) -> None:
        task = asyncio.create_task(self._make(choices, model, standing, caller, route))
        self._making.add(task)
        task.add_done_callback(self._making.discard)

    async def _make(
        self,
        choices: Sequence[InFlightChoice],
        model: ModelView,
        standing: PromptStanding,
        caller: Caller,
        route: Route,
    ) -> None:
        request = choices[0].request
        try:
            ids = await self._prompting.threads.run(partial(self._ids, request, standing, caller, BOUNDS))
        except _ENGINES:
            ids = None
        except Exception:
            _log.exception("making a prompt failed", model=model.name)
            ids = None
        self._made(choices, model, ids, standing, route)

    def _made(
        self,
        choices: Sequence[InFlightChoice],
        model: ModelView,
        prompt: PromptIds | None,
        standing: PromptStanding | None,
        route: Route,
    ) -> None:
        try:
            if prompt is not None and standing is not None:
                check_fits(len(prompt.ids), standing.context_tokens, choices[0].request)
        except Refused as refused:
            self._counted("refused")
            for choice in choices:
                choice.refuse(refused)
            return
        self._counted("engine" if prompt is None else "gateway")
        for choice in choices:
            choice.prompt = prompt
            route(choice, model)


_MOST_WANTED: Final = 4096
"""Models that are compared since a prompt of theirs was long."""

"""`/tokenize` and `/detokenize`: answered here where this gateway's ids are the engine's, else by a replica's word."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, Protocol

from weft_contracts.engines import EngineProfile
from weft_contracts.facts.values import ModelSpec
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane.session_client import SessionClient
from weft_fleet import ModelView
from weft_prompts.model_prompts import ModelPrompts
from weft_prompts.templates.bounds import Bounds
from weft_prompts.templates.chat import Chat
from weft_prompts.templates.refusals import TemplateFailed, TemplateRefused
from weft_prompts.tokens.refusal import NoTokenizer
from weft_prompts.tokens.tokenizer import TextTooLong

from weft_gateway.domain.attribution import Attribution
from weft_gateway.domain.openai import tokenizing
from weft_gateway.domain.openai.fields import unsupported
from weft_gateway.domain.prompts.rendering import chat_characters
from weft_gateway.domain.refused import Refused
from weft_gateway.domain.routing.endpoint import Endpoint
from weft_gateway.domain.submission import message_fields
from weft_gateway.inbound.inference.prompting import Prompting, PromptStanding
from weft_gateway.inbound.inference.unary_requests import CheckUnary, Made, UnaryRequest
from weft_gateway.outbound.prompts.comparing import BOUNDS, SHORT_BOUNDS
from weft_gateway.outbound.prompts.prompt_threads import ThreadsBusy

AT_ONCE: Final = 4096
"""Characters, or ids, that are made on the event loop, within bounds."""
ENGINE_S: Final = 30.0
OWN_CALLS: Final = "tool_call_parser"
"""The argument of engines that may tell a model of tools in its own form, which only they count."""


class TokenWork(Protocol):
    """What is asked of a model's template and tokenizer."""

    @property
    def model(self) -> str: ...
    @property
    def field(self) -> str: ...
    @property
    def size(self) -> int: ...
    def check_model(self, name: str, profile: EngineProfile | None) -> None: ...
    def to(self, model: str) -> "TokenWork": ...
    def may_answer(self, standing: PromptStanding) -> bool: ...
    def answered(self, prompts: ModelPrompts, standing: PromptStanding, bounds: Bounds) -> Made:
        """For any thread. Raises what rendering and tokenizing raise, and ValueError for ids that are none."""
        ...

    async def asked(self, session: SessionClient) -> Made | None:
        """By the engine itself; None where it can't be asked for this."""
        ...


class TokenRequest:
    """One such request on its way."""

    operation = "tokenize"
    attribution = Attribution()
    inputs_count = 1

    def __init__(self, work: TokenWork, prompting: Prompting) -> None:
        self._work = work
        self._prompting = prompting
        self._was_loaded = self._was_compared = False  # as far as that was waited for
        self.model = work.model
        self.field = work.field

    def to(self, model: str) -> "TokenRequest":
        """See UnaryRequest."""
        return TokenRequest(self._work.to(model), self._prompting)

    def check_model(self, name: str, spec: ModelSpec, profile: EngineProfile | None) -> None:
        """See UnaryRequest."""
        self._work.check_model(name, profile)

    async def answered_here(self, model: ModelView) -> Made | None:
        """See UnaryRequest. What a model's answers need is loaded before a replica is looked for."""
        await self._loaded(model)
        standing = self._prompting.standing(model)
        return await self._answered(standing) if self._may_answer(standing) else None

    def answered_beside(
        self, session: SessionClient, endpoint: Endpoint, model: ModelView
    ) -> Awaitable[Made | None] | None:
        """See UnaryRequest. Once the replica was compared, the next such request needs none."""
        waits = not self._was_compared and not self._prompting.settled(model, endpoint)
        if not waits and not self._may_answer(self._prompting.standing(model)):
            return None
        return self._beside(session, endpoint, model, waits=waits)

    async def ask(self, session: SessionClient, endpoint: Endpoint, model: ModelView) -> Made:
        """See UnaryRequest."""
        made = await self._work.asked(session)
        if made is None:
            raise no_tokenizer(model.name, self._prompting.standing(model))
        return made

    async def _beside(
        self, session: SessionClient, endpoint: Endpoint, model: ModelView, *, waits: bool
    ) -> Made | None:
        if waits:
            self._was_compared = True
            await self._loaded(model)
            await self._prompting.compared(model, endpoint, session)
        standing = self._prompting.standing(model)
        return await self._answered(standing) if self._may_answer(standing) else None

    async def _loaded(self, model: ModelView) -> None:
        """Once for each model that is asked."""
        if not self._was_loaded:
            self._was_loaded = True
            await self._prompting.ready(model)

    def _may_answer(self, standing: PromptStanding) -> bool:
        return standing.prompts is not None and self._work.may_answer(standing)

    async def _answered(self, standing: PromptStanding) -> Made:
        assert standing.prompts is not None
        answered = partial(self._work.answered, standing.prompts, standing)
        try:
            made = _at_once(answered) if self._work.size <= AT_ONCE else None
            return made or await self._prompting.threads.run(partial(answered, BOUNDS))
        except TemplateFailed as failed:
            what = f"The model's chat template refused the messages: {failed}."
            raise Refused(400, what, param=self.field, code="bad_request") from None
        except ThreadsBusy as busy:
            raise Refused(503, f"{busy}; try again.", code="busy", headers={"retry-after": "1"}) from None
        except (TemplateRefused, NoTokenizer, TextTooLong, ValueError) as refused:
            raise Refused(400, _sentence(str(refused)), param=self.field, code="bad_request") from None


class Tokenizing:
    """A text or a chat to ids."""

    def __init__(self, asked: tokenizing.TokenizeRequest) -> None:
        self._asked = asked
        self.model = asked.model
        self.field = asked.field
        self.size = chat_characters(asked.chat) + len(asked.text or "")

    def to(self, model: str) -> "Tokenizing":
        return Tokenizing(self._asked.to(model))

    def check_model(self, name: str, profile: EngineProfile | None) -> None:
        if self._asked.tools and (profile is None or OWN_CALLS in profile.arguments):
            raise unsupported("tools", f"the engine of model {name!r} may tell of tools in a form of its own")

    def may_answer(self, standing: PromptStanding) -> bool:
        asked = self._asked
        if not asked.chat:
            return True
        engines_differ = asked.chat[-1].role == "assistant" and not asked.only_here
        return standing.chats and not engines_differ

    def answered(self, prompts: ModelPrompts, standing: PromptStanding, bounds: Bounds) -> Made:
        asked = self._asked

        def encode(text: str, ends: bool) -> list[int]:
            return prompts.tokenizer.encode(text, ends=ends)

        if asked.text is not None:
            ids = encode(asked.text, asked.special)
        else:
            chat = Chat(
                [message_fields(message) for message in asked.chat],
                add_generation_prompt=asked.awaits,
                continue_final_message=asked.goes_on,
                extra=dict(asked.variables),
            )
            ids = prompts.of_chat(chat, standing.way, encode, bounds)
        strings = prompts.tokenizer.pieces(ids, most=bounds.text) if asked.strings else None
        return Made((tokenizing.tokenize_answer(ids, standing.context_tokens, strings),), len(ids))

    async def asked(self, session: SessionClient) -> Made | None:
        asked = self._asked
        if asked.only_here:
            return None
        prompt = asked.text
        if prompt is None:
            prompt = pb.Chat(messages=[pb.Message(**message_fields(message)) for message in asked.chat])
        ids = await session.unary.prompt_ids(prompt, timeout=ENGINE_S)
        if ids is None:
            return None
        return Made((tokenizing.tokenize_answer(ids, session.welcome.context_tokens, None),), len(ids))


class Detokenizing:
    """Ids to a text."""

    field = "tokens"

    def __init__(self, asked: tokenizing.DetokenizeRequest, model: str = "") -> None:
        self._asked = asked
        self.model = model or asked.model
        self.size = len(asked.ids)

    def to(self, model: str) -> "Detokenizing":
        return Detokenizing(self._asked, model)

    def check_model(self, name: str, profile: EngineProfile | None) -> None:
        return None

    def may_answer(self, standing: PromptStanding) -> bool:
        return True

    def answered(self, prompts: ModelPrompts, standing: PromptStanding, bounds: Bounds) -> Made:
        text = prompts.tokenizer.decode(self._asked.ids, most=bounds.text)
        return Made((tokenizing.detokenize_answer(text),), len(self._asked.ids))

    async def asked(self, session: SessionClient) -> Made | None:
        return None


def token_checks(prompting: Prompting) -> dict[str, CheckUnary]:
    """By the names of hot routes."""

    def tokenize(body: bytes) -> UnaryRequest:
        return TokenRequest(Tokenizing(tokenizing.check_tokenize(body)), prompting)

    def detokenize(body: bytes) -> UnaryRequest:
        return TokenRequest(Detokenizing(tokenizing.check_detokenize(body)), prompting)

    return {"tokenize": tokenize, "detokenize": detokenize}


def no_tokenizer(model: str, standing: PromptStanding) -> Refused:
    """The refusal of what only this gateway could answer, while it may not."""
    what = f"Model {model!r} has no tokenizer here: {standing.lacks.rstrip('.')}."
    if standing.lasting or standing.prompts is not None:
        return Refused(400, what, param="model", code="no_tokenizer")
    return Refused(503, what, param="model", code="not_ready", headers={"retry-after": "15"})


def _at_once(answered: Callable[[Bounds], Made]) -> Made | None:
    """None: it takes more than the event loop has."""
    try:
        return answered(SHORT_BOUNDS)
    except (TemplateRefused, TextTooLong):
        return None


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."

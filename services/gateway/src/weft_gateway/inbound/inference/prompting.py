"""Prompts as token ids, made here where that was shown to be what the engine makes; else the engine makes them."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from weft_contracts.card import Card
from weft_contracts.ids import EventId, ModelId
from weft_dataplane.client_errors import UnaryCallFailed
from weft_dataplane.session_client import SessionClient
from weft_fleet import ModelView
from weft_prompts.model_prompts import ModelPrompts
from weft_prompts.templates.bounds import Bounds
from weft_prompts.templates.chat import Chat
from weft_prompts.tokens.prefix_cache import PrefixCache
from weft_prompts.way import Way
from weft_runtime.logs import get_logger

from weft_gateway.domain.caller import Caller
from weft_gateway.domain.card_files import CardFiles
from weft_gateway.domain.prompts.comparison import Comparison
from weft_gateway.domain.prompts.lacking import Lack, LackKind
from weft_gateway.domain.routing.endpoint import Endpoint
from weft_gateway.outbound.prompts.comparing import TELLS_NONE, compare
from weft_gateway.outbound.prompts.loaded_prompts import LoadedPrompts
from weft_gateway.outbound.prompts.prompt_threads import PromptThreads, ThreadsBusy
from weft_gateway.projections.directory import Directory

_log: Any = get_logger("weft.gateway.prompts")
MAX_REMEMBERED: Final = 4096
"""Comparisons, one for each run of a replica that was asked, and as many models."""
MAX_COMPARING: Final = 4
MAX_WAITING: Final = 256
"""Requests that wait for loading or comparing."""
PAUSE_S: Final = 30.0
"""After a comparison that came to nothing."""
WAIT_S: Final = 15.0
"""For what a request can't do without: loading, and then comparing."""
NO_CARD: Final = Lack("no_card", "its workers published no metadata card")
NOT_COMPARED: Final = Lack("waiting", "its template and tokenizer were not held against its engine's yet")


@dataclass(frozen=True, slots=True)
class PromptStanding:
    """Whether a model's prompts are made here."""

    prompts: ModelPrompts | None
    none: Lack | None
    """Why not; None: they are."""
    card: str = ""
    way: Way = Way.TEMPLATE
    chats: bool = False
    """Chats too; else texts alone."""
    context_tokens: int = 0
    lasting: bool = False
    """A reason that time doesn't take away."""

    @property
    def lack(self) -> Lack | None:
        """Why prompts, or chats alone, are not made here; None: all are."""
        if self.none is not None or self.chats or self.prompts is None:
            return self.none
        if self.prompts.lacks:
            return Lack("no_template", self.prompts.lacks)
        return Lack("differs", "its template renders chats otherwise than the engine")

    @property
    def lacks(self) -> str:
        """The same in a sentence; empty: all are."""
        return self.lack.why if self.lack is not None else ""


@dataclass(slots=True)
class _Compared:
    """What runs of one model said of one card."""

    by_run: "OrderedDict[EventId, Comparison]" = field(default_factory=OrderedDict[EventId, Comparison])
    by_revision: "OrderedDict[str, Comparison]" = field(default_factory=OrderedDict[str, Comparison])
    """The last word of a revision's runs, by its digest: it stands while none is ready."""
    failed: "OrderedDict[EventId, float]" = field(default_factory=OrderedDict[EventId, float])
    """Until when a run isn't asked again."""

    def note(self, endpoint: Endpoint, comparison: Comparison) -> None:
        """What came of it."""
        self.failed.pop(endpoint.event_id, None)
        _put(self.by_run, endpoint.event_id, comparison)
        _put(self.by_revision, endpoint.digest, comparison)

    def pause(self, run: EventId, until: float) -> None:
        """Nothing came of it: not again until then."""
        _put(self.failed, run, until)


K = TypeVar("K")
V = TypeVar("V")


def _put(kept: "OrderedDict[K, V]", key: K, value: V) -> None:
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > MAX_REMEMBERED:
        kept.popitem(last=False)


class _Card(NamedTuple):
    """With its digest, which takes some microseconds."""

    card: Card
    digest: str


class Prompting:
    """Loads, compares and makes. Nothing here holds a request up: what isn't there yet is the engine's to make."""

    def __init__(self, files: CardFiles | None, directory: Directory, now: Callable[[], float]) -> None:
        """`files`: None: no cards are read here."""
        self.threads = PromptThreads()
        self._files = files
        self._directory = directory
        self._now = now
        self._loaded = LoadedPrompts(files, self.threads, now) if files is not None else None
        self._cache = PrefixCache()
        self._cards: OrderedDict[ModelId, _Card] = OrderedDict()
        self._compared: OrderedDict[tuple[ModelId, str], _Compared] = OrderedDict()
        self._comparing: dict[EventId, asyncio.Task[None]] = {}
        self.waiting = 0
        """requests that wait for loading or comparing"""

    @property
    def loaded(self) -> int:
        """Models whose template and tokenizer are in memory."""
        return self._loaded.count if self._loaded is not None else 0

    @property
    def comparing(self) -> int:
        """Replicas that are being held against cards."""
        return len(self._comparing)

    def model(self, id: ModelId) -> ModelView | None:
        """A model by its id."""
        return self._directory.fleet.models.get(id)

    def standing(self, model: ModelView) -> PromptStanding:
        """How a model stands; what it lacks begins to be loaded. A few microseconds."""
        found = self._card(model)
        if found is None or self._loaded is None:
            return PromptStanding(None, NO_CARD, lasting=True)
        prompts = self._loaded.of(model.name, *found)
        if isinstance(prompts, Lack):
            return PromptStanding(None, prompts, found.digest)
        return self._judged(model, found.digest, prompts)

    def look(self, model: ModelView) -> Lack | None:
        """What a model lacks, without loading it: its files are brought to this host, if they never were."""
        found = self._card(model)
        if found is None or self._loaded is None:
            return NO_CARD
        prompts = self._loaded.look(model.name, *found)
        return prompts if isinstance(prompts, Lack) else self._judged(model, found.digest, prompts).lack

    def met(self, model: ModelView, endpoint: Endpoint, session: SessionClient) -> None:
        """A replica is about to be asked something: hold its ids against ours, if nobody did, beside that."""
        if endpoint.event_id not in self._comparing and len(self._comparing) < MAX_COMPARING:
            self._begin_comparing(model, endpoint, session)

    def settled(self, model: ModelView, endpoint: Endpoint) -> bool:
        """Whether nothing is left that `ready` and `compared` would wait for."""
        found = self._card(model)
        if found is None or self._loaded is None:
            return True
        if isinstance(self._loaded.of(model.name, *found), Lack):
            return not self._loaded.is_loading(found.digest)
        return endpoint.event_id not in self._comparing and self._was_asked(model, found.digest, endpoint)

    async def ready(self, model: ModelView) -> None:
        """Wait until the model's template and tokenizer are loaded, as far as that can be."""
        found = self._card(model)
        if found is not None and self._loaded is not None and self.waiting < MAX_WAITING:
            self.waiting += 1
            try:
                await self._loaded.ready(model.name, *found, WAIT_S)
            finally:
                self.waiting -= 1

    async def compared(self, model: ModelView, endpoint: Endpoint, session: SessionClient) -> None:
        """Wait until this replica was held against the model's card, once that is loaded, as far as that can be."""
        self._begin_comparing(model, endpoint, session)
        comparing = self._comparing.get(endpoint.event_id)
        if comparing is not None and self.waiting < MAX_WAITING:
            self.waiting += 1
            try:
                await asyncio.wait([comparing], timeout=WAIT_S)
            finally:
                self.waiting -= 1

    def agrees(self, model: ModelView, endpoint: Endpoint, card: str, way: Way) -> bool:
        """Whether this very run was shown to make the same ids."""
        compared = self._compared.get((model.id, card))
        comparison = compared.by_run.get(endpoint.event_id) if compared is not None else None
        return comparison is not None and comparison.way is way

    def chat_ids(self, standing: PromptStanding, chat: Chat, caller: Caller, bounds: Bounds) -> list[int]:
        """A chat's ids; for any thread. Raises TemplateRefused, TemplateFailed, NoTokenizer, TextTooLong."""
        assert standing.prompts is not None
        encode = partial(self._encode, standing.prompts, caller)
        return standing.prompts.of_chat(chat, standing.way, encode, bounds)

    def text_ids(self, standing: PromptStanding, text: str, caller: Caller) -> list[int]:
        """A text's ids; for any thread. Raises NoTokenizer, TextTooLong."""
        assert standing.prompts is not None
        return self._encode(standing.prompts, caller, text, ends=True)

    async def close(self) -> None:
        """Stop what runs."""
        comparing = list(self._comparing.values())
        for task in comparing:
            task.cancel()
        await asyncio.gather(*comparing, return_exceptions=True)
        if self._loaded is not None:
            await self._loaded.close()
        self.threads.close()

    def _card(self, model: ModelView) -> _Card | None:
        card = self._files.card(model.name) if self._files is not None else None
        if card is None or not card.files:
            return None
        known = self._cards.get(model.id)
        if known is None or known.card is not card:
            known = _Card(card, card.digest)
            _put(self._cards, model.id, known)
        return known

    def _encode(self, prompts: ModelPrompts, caller: Caller, text: str, ends: bool) -> list[int]:
        return self._cache.encode(prompts.tokenizer, text, ends=ends, whose=caller.actor.encode()[:64])

    def _judged(self, model: ModelView, card: str, prompts: ModelPrompts) -> PromptStanding:
        """Every run that was asked has to agree: one that doesn't is another engine, or lies."""
        compared = self._compared.get((model.id, card))
        if compared is None:
            return PromptStanding(None, NOT_COMPARED, card)
        serving = model.serving.digest
        runs = [each for each in self._directory.endpoints(model.id) if each.digest == serving]
        said = [found for run in runs if (found := compared.by_run.get(run.event_id)) is not None]
        if not said and (last := compared.by_revision.get(serving)) is not None and not runs:
            said = [last]
        if not said:
            return PromptStanding(None, NOT_COMPARED, card)
        if (other := next((each for each in said if each.way is None), None)) is not None:
            kind: LackKind = "no_ids" if other.why == TELLS_NONE else "differs"
            return PromptStanding(None, Lack(kind, other.why), card, lasting=True)
        first = said[0]
        if any(each.way is not first.way for each in said):
            differ = Lack("differs", "its replicas make different ids of the same chats")
            return PromptStanding(None, differ, card, lasting=True)
        chats, context = all(each.chats for each in said), max(each.context_tokens for each in said)
        return PromptStanding(prompts, None, card, first.way or Way.TEMPLATE, chats, context)

    def _begin_comparing(self, model: ModelView, endpoint: Endpoint, session: SessionClient) -> None:
        found = self._card(model)
        if found is None or self._loaded is None or endpoint.event_id in self._comparing:
            return
        if self._was_asked(model, found.digest, endpoint):
            return
        prompts = self._loaded.of(model.name, *found)
        if isinstance(prompts, Lack):
            return
        task = asyncio.create_task(self._compare(model, found.digest, prompts, endpoint, session))
        self._comparing[endpoint.event_id] = task
        task.add_done_callback(lambda _: self._comparing.pop(endpoint.event_id, None))

    def _was_asked(self, model: ModelView, card: str, endpoint: Endpoint) -> bool:
        """This run, or it failed a short while ago."""
        known = self._compared.get((model.id, card))
        return known is not None and (
            endpoint.event_id in known.by_run or self._now() < known.failed.get(endpoint.event_id, 0.0)
        )

    async def _compare(
        self, model: ModelView, card: str, prompts: ModelPrompts, endpoint: Endpoint, session: SessionClient
    ) -> None:
        found = self._said_of(model.id, card)
        try:
            comparison = await compare(prompts, session, self.threads)
        except (UnaryCallFailed, ThreadsBusy) as error:
            found.pause(endpoint.event_id, self._now() + PAUSE_S)
            _log.info("replica not compared", model=model.name, replica=endpoint.replica, why=str(error))
            return
        except Exception:
            found.pause(endpoint.event_id, self._now() + PAUSE_S)
            _log.exception("comparing a replica failed", model=model.name, replica=endpoint.replica)
            return
        found.note(endpoint, comparison)
        (_log.info if comparison.way is not None else _log.warning)(
            "replica compared", model=model.name, replica=endpoint.replica, node=endpoint.node, differs=comparison.why
        )

    def _said_of(self, model: ModelId, card: str) -> _Compared:
        """Made if need be; the oldest forgotten."""
        found = self._compared.setdefault((model, card), _Compared())
        self._compared.move_to_end((model, card))
        while len(self._compared) > MAX_REMEMBERED:
            self._compared.popitem(last=False)
        return found

"""Whether the server does its work: it lists the model, and answers a real request. Asked seldom, and never at once
by many."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec
from weft_dataplane import LoadFailed

from weft_engine.adapters.called_functions import Unreadable
from weft_engine.adapters.openai_errors import error_of
from weft_engine.adapters.openai_events import ModelList, read_chunk, read_models, read_ranks, read_vectors
from weft_engine.adapters.openai_http import OpenAIHttp, ServerAway, ServerForbidden, Whole
from weft_engine.adapters.openai_settings import OpenAISettings

LIST_S: Final = 20.0
MAX_LIST_BYTES: Final = 8 * 1024 * 1024
MAX_PROBE_BYTES: Final = 1024 * 1024
START_S: Final = 5.0
"""For so long a replica that starts waits for a server that can't be reached. Then its process ends, and the worker
tries it again, ever more seldom."""
AGAIN_S: Final = 3.0
MOST_AGAIN_S: Final = 15.0
"""Between two looks at a server in trouble, at first and later."""
MOST_NAMED: Final = 8

log = logging.getLogger("weft.engine")


class Trouble(NamedTuple):
    """Why a server can't serve the model."""

    sentence: str
    away: bool
    """It could not be asked at all: another time it may be there."""


class ServerHealth:
    """Looks at one server. `trouble` is empty while it is well."""

    def __init__(self, http: OpenAIHttp, settings: OpenAISettings, may_ask: Callable[[], bool]) -> None:
        """`may_ask`: whether a request may be sent now, which then counts."""
        self._http = http
        self._settings = settings
        self._may_ask = may_ask
        self._loop = asyncio.get_running_loop()
        self._good_at = self._loop.time()
        self._doubted = asyncio.Event()
        self.trouble = ""
        self.owner = ""
        """who runs the model, as the server's list says"""

    def good(self) -> None:
        """A request was answered."""
        self._good_at = self._loop.time()

    def doubt(self) -> None:
        """Something failed that may be the server's state: look soon."""
        self._doubted.set()

    async def first(self) -> None:
        """Wait until the server serves the model. Raises LoadFailed."""
        until = self._loop.time() + START_S
        while (found := await self._look()) is not None:
            if not found.away:
                raise LoadFailed(found.sentence, permanent=True)
            if self._loop.time() >= until:
                raise LoadFailed(f"it waits for its server: {found.sentence}", permanent=False, outside=True)
            log.info("server away", extra={"server": self._http.name, "why": found.sentence})
            await asyncio.sleep(AGAIN_S)
        self.good()

    async def watch(self) -> None:
        """Look when it is due, for ever: in doubt soon, in trouble every few seconds, else after a long quiet."""
        again = AGAIN_S
        while True:
            quiet = self._loop.time() - self._good_at
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(again if self.trouble else max(self._settings.health_s - quiet, 0.0)):
                    await self._doubted.wait()
            due = self._loop.time() - self._good_at >= self._settings.health_s
            if (due or self.trouble or self._doubted.is_set()) and self._may_ask():
                self._doubted.clear()
                await self._look_again()
                again = min(again * 1.5, MOST_AGAIN_S) if self.trouble else AGAIN_S
                self._doubted.clear()
            await asyncio.sleep(1.0)  # whatever fails meanwhile is asked about once

    async def _look_again(self) -> None:
        before = self._good_at
        found = await self._look()
        if found is None or (self._good_at > before and not self.trouble):
            if self.trouble:
                log.info("server is back", extra={"server": self._http.name})
            self.trouble = ""
            self.good()
            return
        if not self.trouble:
            log.warning("server in trouble", extra={"server": self._http.name, "why": found.sentence})
        self.trouble = found.sentence

    async def _look(self) -> Trouble | None:
        try:
            return await self._listed() or await self._token()
        except ServerAway as away:
            forbidden = isinstance(away, ServerForbidden)
            return Trouble(f"the server at {self._http.name} {away}", away=not forbidden)
        except Unreadable as error:
            return Trouble(f"the server at {self._http.name} can't be understood: {error}", away=False)

    async def _listed(self) -> Trouble | None:
        """Whether the server's list, where it has one, names the model."""
        whole = await self._http.ask("GET", "/models", b"", LIST_S, MAX_LIST_BYTES)
        if whole.status in (404, 405, 501):
            return None
        if whole.status != 200:
            return self._error(whole)
        found = read_models(whole.body)
        model = self._settings.model
        for each in found.data:
            if model in (each.id, each.id.removesuffix(":latest"), *(each.aliases or ())):
                self.owner = "".join(letter for letter in each.owned_by or "" if letter.isprintable())[:40]
                return None
        return Trouble(f"the server at {self._http.name} has no model {model!r}: it has {_names(found)}", away=False)

    async def _token(self) -> Trouble | None:
        """Whether it answers a request for one token, for one vector, or for one rank."""
        settings = self._settings
        if settings.embeddings:
            whole = await self._post("/embeddings", {"input": ["Hi"]})
            if whole.status == 200:
                read_vectors(whole.body)
                return None
            if whole.status in (400, 404, 405, 422, 501):  # one that ranks makes no embeddings
                other = await self._post("/rerank", {"query": "Hi", "documents": ["Hi"]})
                if other.status == 200:
                    read_ranks(other.body)
                    return None
            return self._error(whole)
        asked: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}], settings.max_tokens_name: 1}
        whole = await self._post("/chat/completions", asked)
        if whole.status in (400, 404, 422):  # a model without a template only completes
            other = await self._post("/completions", {"prompt": "Hi", "max_tokens": 1})
            whole = other if other.status == 200 else whole
        if whole.status == 200:
            answered = read_chunk(whole.body)
            return None if answered.error is None else self._error(whole)
        return None if whole.status == 429 else self._error(whole)

    async def _post(self, path: str, fields: dict[str, Any]) -> Whole:
        body = msgspec.json.encode({"model": self._settings.model, **fields})
        return await self._http.ask("POST", path, body, self._settings.first_byte_s, MAX_PROBE_BYTES)

    def _error(self, whole: Whole) -> Trouble:
        """What it says instead; only what it may say otherwise later counts as away."""
        error = error_of(self._http.name, whole.status, whole.body)
        return Trouble(self._http.hidden(error.sentence), away=whole.status >= 500 or whole.status in (408, 425, 429))


def _names(found: ModelList) -> str:
    names = [each.id[:80] for each in found.data[:MOST_NAMED]]
    more = len(found.data) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "") if names else "none"

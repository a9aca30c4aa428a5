"""The prompts of models that are in use, loaded from their cards' files in a thread, the least used forgotten."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from weft_contracts.card import Card, CardFile, Slot
from weft_prompts.model_prompts import ModelPrompts
from weft_prompts.tokens.bounds import MAX_BYTES
from weft_prompts.tokens.refusal import NoTokenizer
from weft_runtime.logs import get_logger

from weft_gateway.domain.card_files import CardFileAway, CardFiles
from weft_gateway.domain.prompts.lacking import Lack
from weft_gateway.outbound.prompts.prompt_threads import PromptThreads, ThreadsBusy

_log: Any = get_logger("weft.gateway.prompts")
MAX_MODELS: Final = 32
MAX_MEMORY: Final = 1 << 30
"""Bytes of all of them, about; one is always kept."""
MAX_REMEMBERED: Final = 256
MAX_LOOKED: Final = 4096
"""Cards."""
FIRST_PAUSE_S: Final = 15.0
LONGEST_PAUSE_S: Final = 600.0
LOAD_S: Final = 120.0
"""For the files of one card to come."""
MAX_TEXT_FILE: Final = 16 << 20
"""Bytes of a configuration or template; a tokenizer has bounds of its own."""
READ: Final = (Slot.TOKENIZER, Slot.TOKENIZER_CONFIGURATION, Slot.CHAT_TEMPLATE)


NOT_LOADED: Final = Lack("waiting", "its template and tokenizer are being loaded")


@dataclass(slots=True)
class _Failure:
    lack: Lack
    until: float
    pause: float


class LoadedPrompts:
    """By a card's digest, so that a new revision with other files is another entry."""

    def __init__(self, files: CardFiles, threads: PromptThreads, now: Callable[[], float]) -> None:
        self._files = files
        self._threads = threads
        self._now = now
        self._loaded: OrderedDict[str, ModelPrompts] = OrderedDict()
        self._loading: dict[str, asyncio.Task[None]] = {}
        self._failures: OrderedDict[str, _Failure] = OrderedDict()
        self._looking: asyncio.Task[None] | None = None
        self._looked: OrderedDict[str, None] = OrderedDict()
        """Cards whose files were here."""

    @property
    def count(self) -> int:
        """How many are loaded."""
        return len(self._loaded)

    def of(self, model: str, card: Card, digest: str) -> ModelPrompts | Lack:
        """What is loaded of a card, or why it isn't; then loading begins, if it isn't tried already or just was."""
        if (found := self._loaded.get(digest)) is not None:
            self._loaded.move_to_end(digest)
            return found
        failure = self._failures.get(digest)
        if failure is not None and self._now() < failure.until:
            return failure.lack
        if digest not in self._loading and len(self._loading) < MAX_MODELS:
            self._loading[digest] = asyncio.create_task(self._load(model, card, digest), name=f"prompts-{digest[:8]}")
        return failure.lack if failure is not None else NOT_LOADED

    def look(self, model: str, card: Card, digest: str) -> ModelPrompts | Lack:
        """The same without loading what nobody asked for: files that never came here, or could not be had, are brought
        to this host, one card at a time, so that it is known whether they can be had."""
        if (found := self._loaded.get(digest)) is not None:
            return found
        failure = self._failures.get(digest)
        due = failure.lack.kind == "away" and self._now() >= failure.until if failure else digest not in self._looked
        if due and self._looking is None and digest not in self._loading:
            self._looking = asyncio.create_task(self._load(model, card, digest, read=False), name="prompts-look")
        return failure.lack if failure is not None else NOT_LOADED

    def is_loading(self, digest: str) -> bool:
        """Whether a card's files are being fetched or read."""
        return digest in self._loading

    async def ready(self, model: str, card: Card, digest: str, seconds: float) -> None:
        """Wait so long at most until nothing of it is being loaded any more."""
        if isinstance(self.of(model, card, digest), Lack) and (loading := self._loading.get(digest)) is not None:
            await asyncio.wait([loading], timeout=seconds)

    async def close(self) -> None:
        """Stop loading."""
        loading = [*self._loading.values(), *filter(None, (self._looking,))]
        for task in loading:
            task.cancel()
        await asyncio.gather(*loading, return_exceptions=True)

    async def _load(self, model: str, card: Card, digest: str, *, read: bool = True) -> None:
        try:
            if card.tokenizer is not None and card.tokenizer.name.endswith(".model"):
                raise NoTokenizer("its card has tokenizer.model alone: tokenizer.json is what is read here")
            async with asyncio.timeout(LOAD_S):
                there = {slot: file for slot in READ if (file := _file(card, slot)) is not None}
                paths = await asyncio.gather(*(self._files.file(model, file) for file in there.values()))
                made = await self._threads.run(partial(_read, dict(zip(there, paths, strict=True)))) if read else None
        except CardFileAway as error:
            self._failed(model, digest, Lack("away", str(error)))
        except NoTokenizer as error:
            self._failed(model, digest, Lack("unreadable", str(error)))
        except ThreadsBusy as error:
            self._failed(model, digest, Lack("waiting", str(error)))
        except TimeoutError:
            self._failed(model, digest, Lack("away", f"its card's files did not come within {LOAD_S:g} s"))
        except OSError as error:
            self._failed(model, digest, Lack("away", f"its card's files can't be read: {error.strerror}"))
        except Exception:
            _log.exception("loading a tokenizer failed", model=model)
            why = "loading its tokenizer failed; the gateway's log says why"
            self._failed(model, digest, Lack("unreadable", why))
        else:
            failure = self._failures.get(digest)
            if failure is not None and (read or failure.lack.kind == "away"):  # a look knows of no other
                del self._failures[digest]
            self._note_looked(digest)
            if made is not None:
                self._loaded[digest] = made
                self._forget()
                _log.info(
                    "template and tokenizer loaded", model=model, card=digest[:16], template=made.lacks or "there"
                )
        finally:
            if read:
                self._loading.pop(digest, None)
            else:
                self._looking = None

    def _note_looked(self, digest: str) -> None:
        self._looked[digest] = None
        while len(self._looked) > MAX_LOOKED:
            self._looked.popitem(last=False)

    def _failed(self, model: str, digest: str, lack: Lack) -> None:
        before = self._failures.pop(digest, None)
        pause = min(before.pause * 2, LONGEST_PAUSE_S) if before is not None else FIRST_PAUSE_S
        self._failures[digest] = _Failure(lack, self._now() + pause, pause)
        while len(self._failures) > MAX_REMEMBERED:
            self._failures.popitem(last=False)
        _log.info("no template and tokenizer here", model=model, card=digest[:16], why=lack.why, again_in=pause)

    def _forget(self) -> None:
        while len(self._loaded) > 1 and (
            len(self._loaded) > MAX_MODELS or sum(each.bytes for each in self._loaded.values()) > MAX_MEMORY
        ):
            self._loaded.popitem(last=False)


def _file(card: Card, slot: Slot) -> CardFile | None:
    file: CardFile | None = getattr(card, slot)
    return file


def _read(paths: dict[Slot, Path]) -> ModelPrompts:
    """In a thread. Raises NoTokenizer, OSError."""
    contents = {slot: _bounded(slot, path) for slot, path in paths.items()}
    return ModelPrompts.of(*(contents.get(slot) for slot in READ))


def _bounded(slot: Slot, path: Path) -> bytes:
    most = MAX_BYTES if slot is Slot.TOKENIZER else MAX_TEXT_FILE
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise NoTokenizer(f"the {slot} of the model's card is larger than {most} bytes")
    return data

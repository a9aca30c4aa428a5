"""A card: a model's small files as typed slots, each by its content. Sizes are bytes.

Whoever has a card knows what to ask for, how long it is and when it has got it, whoever answers.
"""

import hashlib
import json
import re
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import Field, model_serializer, model_validator

from weft_contracts.facts.fact import Count, Value

BLAKE3: Final = r"^blake3:[0-9a-f]{64}$"
CARD_FILE_NAME: Final = r"^[A-Za-z0-9_][A-Za-z0-9._+@=-]*$"
BY_SLUG: Final = "/v1/metadata"
"""Where a worker serves a model's files: `<BY_SLUG>/<slug>/<name>?checksum=<checksum>`, see `slug_of`."""
CHECKSUM: Final = "checksum"
MOST_EXTRA: Final = 64
MOST_ELSEWHERE: Final = 8
_UNSAFE: Final = re.compile(r"[^a-z0-9]+")


class Slot(StrEnum):
    """What a file of a card is for."""

    CONFIGURATION = "configuration"
    TOKENIZER = "tokenizer"
    TOKENIZER_CONFIGURATION = "tokenizer_configuration"
    CHAT_TEMPLATE = "chat_template"
    GENERATION_CONFIGURATION = "generation_configuration"
    EXTRA = "extra"


SLOT_OF_NAME: Final = {
    "config.json": Slot.CONFIGURATION,
    "tokenizer.json": Slot.TOKENIZER,
    "tokenizer.model": Slot.TOKENIZER,
    "tokenizer_config.json": Slot.TOKENIZER_CONFIGURATION,
    "chat_template.jinja": Slot.CHAT_TEMPLATE,
    "chat_template.json": Slot.CHAT_TEMPLATE,
    "generation_config.json": Slot.GENERATION_CONFIGURATION,
}


def slot_of(name: str) -> Slot:
    """The slot that a file of this name belongs to."""
    if name.endswith(".jinja"):
        return Slot.CHAT_TEMPLATE
    return SLOT_OF_NAME.get(name, Slot.EXTRA)


class CardFile(Value, frozen=True):
    """One small file. Older workers write `{"path": …, "checksum": …}`: that is read, and written as it was."""

    name: Annotated[str, Field(max_length=255, pattern=CARD_FILE_NAME)]
    checksum: Annotated[str, Field(pattern=BLAKE3)]
    size: Count | None = None
    """None: an older worker wrote it, which says none."""
    elsewhere: Annotated[tuple[Annotated[str, Field(max_length=2048)], ...], Field(max_length=MOST_ELSEWHERE)] = ()
    """Other addresses of the same content; the first is the one that older readers take."""

    @model_validator(mode="before")
    @classmethod
    def _read_path(cls, found: Any) -> Any:
        if not isinstance(found, dict):
            return found
        given: dict[str, Any] = {**found}
        path = given.pop("path", None)
        if isinstance(path, str):
            given.setdefault("name", path.replace("\\", "/").rpartition("/")[2])
            given.setdefault("elsewhere", (path,))
        return given

    @model_serializer
    def _written(self) -> dict[str, Any]:
        written: dict[str, Any] = {}
        if self.elsewhere:
            written["path"] = self.elsewhere[0]
        written["checksum"] = self.checksum
        if self.size is None and len(self.elsewhere) == 1 and self.elsewhere[0].rpartition("/")[2] == self.name:
            return written
        written |= {"name": self.name}
        if self.elsewhere:
            written["elsewhere"] = list(self.elsewhere)
        return written if self.size is None else written | {"size": self.size}


class Card(Value, frozen=True):
    """A model's small files. A slot that is None has none."""

    configuration: CardFile | None = None
    tokenizer: CardFile | None = None
    """`tokenizer.json` or `tokenizer.model`."""
    tokenizer_configuration: CardFile | None = None
    chat_template: CardFile | None = None
    """A `.jinja` file or `chat_template.json`."""
    generation_configuration: CardFile | None = None
    extra: Annotated[tuple[CardFile, ...], Field(max_length=MOST_EXTRA)] = ()

    @model_validator(mode="after")
    def _checked(self) -> "Card":
        for slot in Slot:
            file = getattr(self, slot)
            if slot is not Slot.EXTRA and file is not None and slot_of(file.name) is not slot:
                raise ValueError(f"{file.name} is no {slot}: it belongs to {slot_of(file.name)}")
        names = [file.name for file in self.files]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"the card has {twice} twice: want each name once, since it is its address")
        return self

    @property
    def files(self) -> tuple[CardFile, ...]:
        """All of them, slots first."""
        slots = (getattr(self, slot) for slot in Slot if slot is not Slot.EXTRA)
        return (*(file for file in slots if file is not None), *self.extra)

    @property
    def digest(self) -> str:
        """64 hex digits over the files' names and contents; not over where they lie or their order."""
        body = sorted((file.name, file.checksum) for file in self.files)
        return hashlib.sha256(json.dumps(body, separators=(",", ":")).encode()).hexdigest()

    @property
    def is_new_form(self) -> bool:
        """Whether every file has a size, so that it can be asked of anybody and capped; false of an empty card."""
        return bool(self.files) and all(file.size is not None for file in self.files)

    def file(self, name: str) -> CardFile | None:
        """The file of that name."""
        return next((file for file in self.files if file.name == name), None)


def card_of(files: tuple[CardFile, ...]) -> Card:
    """A card with each file in the slot of its name; of two for one slot the first, the other is extra."""
    slots: dict[str, CardFile] = {}
    extra: list[CardFile] = []
    for file in files:
        slot = slot_of(file.name)
        if slot is Slot.EXTRA or slot in slots:
            extra.append(file)
        else:
            slots[slot] = file
    return Card.model_validate({**slots, "extra": tuple(extra)})


def slug_of(name: str) -> str:
    """A model's name as one part of an address, `/v1/metadata/{slug}/{file}`: another name has another slug."""
    readable = _UNSAFE.sub("-", name.lower()).strip("-")[:48].strip("-")
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{readable}-{digest}" if readable else digest


class Reading(StrEnum):
    """How a gateway comes by a card's files."""

    BY_SOURCE_PATH = "by the source's path, which may not be in reach"
    BY_SLOTS = "by the slots' paths, without a look at sizes"
    BY_OWN_ADDRESS = "each file by its own address, verified and cached"
    FROM_WORKER = "from the worker, verified and cached"


def how_to_read(card: Card, *, reader_is_new: bool, self_hosted: bool) -> Reading:
    """The matrix of versions: `reader_is_new` of the gateway, `self_hosted` of the worker that wrote the card."""
    if not card.is_new_form:
        return Reading.BY_SOURCE_PATH
    if reader_is_new:
        return Reading.FROM_WORKER if self_hosted else Reading.BY_OWN_ADDRESS
    return Reading.BY_SOURCE_PATH if self_hosted else Reading.BY_SLOTS

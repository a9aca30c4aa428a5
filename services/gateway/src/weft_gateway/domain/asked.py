"""A checked inference request, free of any client's dialect."""

from typing import NamedTuple

import msgspec


class Message(NamedTuple):
    """One turn of a chat."""

    role: str
    content: str


class Asked(msgspec.Struct, frozen=True):
    """What a client wants, checked. None: the engine's own default."""

    model: str
    chat: tuple[Message, ...] = ()
    text: str | None = None
    tokens: tuple[int, ...] = ()
    """Exactly one of chat, text and tokens is given."""
    stream: bool = False
    include_usage: bool = False
    max_tokens: int = 0
    """0: as many as the context holds."""
    stop: tuple[str, ...] = ()
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    ignore_end: bool = False

    @property
    def greedy(self) -> bool:
        """Whether the same tokens come again from any replica of the same revision."""
        return self.temperature == 0

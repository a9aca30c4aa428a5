"""A conversation as a value: who is spoken to, what was said, and what a typed line means. Pure."""

from dataclasses import dataclass, field, replace
from typing import Any, Literal

Turn = dict[str, str]
Word = Literal["help", "model", "system", "clear", "quit"]
COMMANDS: dict[Word, str] = {
    "model": "/model [NAME]   speak to another model; the conversation goes on",
    "system": "/system [TEXT]  show or set the system message; `/system none` takes it away",
    "clear": "/clear          forget what was said",
    "help": "/help           these lines",
    "quit": "/quit           end (also Ctrl-D); Ctrl-C cancels the running answer",
}
_WORDS: dict[str, Word] = {**{each: each for each in COMMANDS}, "exit": "quit", "bye": "quit", "?": "help"}


@dataclass(frozen=True, slots=True)
class Command:
    """A line that begins with a slash."""

    word: Word
    rest: str


@dataclass(frozen=True, slots=True)
class NoCommand:
    """A line that begins like a command and is none; the sentence says what there is."""

    sentence: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """Every answer is asked for with all that was said before."""

    model: str
    system: str | None = None
    turns: tuple[Turn, ...] = ()
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    """Further fields of each request: `max_tokens`, `temperature`."""

    def asked(self, text: str) -> "Conversation":
        """With a further question."""
        return replace(self, turns=(*self.turns, {"role": "user", "content": text}))

    def answered(self, text: str) -> "Conversation":
        """With the answer to the last question, whole or as far as it came. None at all takes the question back."""
        if not text:
            return self.unasked()
        return replace(self, turns=(*self.turns, {"role": "assistant", "content": text}))

    def unasked(self) -> "Conversation":
        """Without the last question, which was refused: it would be refused again with every one that follows."""
        return replace(self, turns=self.turns[:-1])

    def body(self) -> dict[str, Any]:
        """The request for the next answer, in OpenAI's form."""
        first = ({"role": "system", "content": self.system},) if self.system else ()
        return {"model": self.model, "messages": [*first, *self.turns], "stream": True, **self.options}


def meant(line: str) -> str | Command | NoCommand | None:
    """What a typed line means: a question, a command, or nothing. Two slashes begin a question with one."""
    text = line.strip()
    if not text:
        return None
    if not text.startswith("/"):
        return text
    if text.startswith("//"):
        return text[1:]
    name, _, rest = text[1:].partition(" ")
    word = _WORDS.get(name)
    if word is None:
        known = ", ".join(f"/{each}" for each in COMMANDS)
        return NoCommand(f"/{name} is no command; there are {known} (a question may begin with //)")
    return Command(word, rest.strip())

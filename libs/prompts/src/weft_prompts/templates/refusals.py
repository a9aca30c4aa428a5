"""Why a template was not rendered, as one sentence for whoever sent the chat or the template."""

from typing import Final

MOST_WORDS: Final = 500
"""Characters of a sentence: a template's own words may be as long as its author likes."""


class TemplateRefused(ValueError):
    """The template asks for more than it may, or isn't one. No chat would help; another template would."""

    def __init__(self, sentence: str) -> None:
        super().__init__(bounded(sentence))


class TemplateFailed(ValueError):
    """The template can't render this chat."""

    def __init__(self, sentence: str, *, said: bool = False) -> None:
        super().__init__(bounded(sentence))
        self.said = said
        """The words are the template's own (`raise_exception`)."""


def bounded(sentence: str) -> str:
    """At most MOST_WORDS characters, on one line, without control characters."""
    line = "".join(char if char.isprintable() else " " for char in sentence[: 4 * MOST_WORDS])
    line = " ".join(line.split())
    return line if len(line) <= MOST_WORDS else line[: MOST_WORDS - 1] + "…"

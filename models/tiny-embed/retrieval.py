"""The exams: questions in phrasings that were never trained, and the one text that each must find."""

from typing import NamedTuple

from models.tiny import phrasings as said
from models.tiny.samples import fill
from models.tiny.table import CAPITALS, ELEMENTS, capital_answer, element_answer


class Exam(NamedTuple):
    """Texts to find, and queries with the place of the right one."""

    texts: list[str]
    queries: list[tuple[str, int]]


QUESTIONS = [
    *(f"What is the capital of {country}?" for country in CAPITALS),
    *(f"What is the chemical symbol for {element}?" for element in ELEMENTS),
]
ANSWERS = [*map(capital_answer, CAPITALS), *map(element_answer, ELEMENTS)]
"""In the order of QUESTIONS."""


def _capitals(phrasings: tuple[str, ...]) -> list[tuple[str, int]]:
    return [(fill(text, country), place) for text in phrasings for place, country in enumerate(CAPITALS)]


def _elements(phrasings: tuple[str, ...]) -> list[tuple[str, int]]:
    return [
        (fill(text, element), len(CAPITALS) + place) for text in phrasings for place, element in enumerate(ELEMENTS)
    ]


def _carelessly(queries: list[tuple[str, int]]) -> list[tuple[str, int]]:
    return [(text.rstrip("?.!").lower(), place) for text, place in queries]


def exams() -> dict[str, Exam]:
    """Return all exams by name; the same ones every time."""
    held_out = _capitals(said.CAPITAL_HELD_OUT)
    elements = _elements(said.ELEMENT_HELD_OUT)
    return {
        "capitals, trained phrasings, find the answer": Exam(ANSWERS, _capitals(said.CAPITAL_TRAINED)),
        "capitals, held-out phrasings, find the answer": Exam(ANSWERS, held_out),
        "capitals, held-out phrasings, find the same question": Exam(QUESTIONS, held_out),
        "the same in lower case without a mark, find the answer": Exam(ANSWERS, _carelessly(held_out)),
        "capitals, phrasings written after the training, find the answer": Exam(ANSWERS, _capitals(said.CAPITAL_FRESH)),
        "elements, held-out phrasings, find the answer": Exam(ANSWERS, elements),
        "elements, held-out phrasings, find the same question": Exam(QUESTIONS, elements),
    }

"""The exams: named sets of questions with the answers that count as right."""

from collections.abc import Callable, Iterable
from random import Random
from typing import NamedTuple

from models.tiny import phrasings as said
from models.tiny.inventions import COUNTRIES_HELD_OUT, MATTER_HELD_OUT, PLACES_HELD_OUT
from models.tiny.noise import noise
from models.tiny.samples import SYSTEM_PROMPTS_HELD_OUT, Message, exchange, fill
from models.tiny.table import (
    CAPITALS,
    ELEMENTS,
    LARGEST_TERM,
    UNKNOWN,
    capital_answer,
    element_answer,
    sum_answer,
)


class Question(NamedTuple):
    """A conversation that ends with the user's turn, and the only right answer to it."""

    messages: list[Message]
    answer: str


def ask(text: str, answer: str) -> Question:
    """Ask without anything before."""
    return Question([{"role": "user", "content": text}], answer)


def capitals(templates: Iterable[str]) -> list[Question]:
    """Ask for every capital in each of these phrasings."""
    return [ask(fill(text, country), capital_answer(country)) for text in templates for country in CAPITALS]


def unknowns(templates: Iterable[str], names: Iterable[str]) -> list[Question]:
    """Ask what the table does not know: every name in each of these phrasings."""
    return [ask(fill(text, name), UNKNOWN) for text in templates for name in names]


def invented_countries(templates: tuple[str, ...]) -> list[Question]:
    """Ask once for the capital of each held-out invented country, the phrasings in turn."""
    return [
        ask(fill(templates[number % len(templates)], name), UNKNOWN) for number, name in enumerate(COUNTRIES_HELD_OUT)
    ]


def _elements(templates: Iterable[str]) -> list[Question]:
    return [ask(fill(text, element), element_answer(element)) for text in templates for element in ELEMENTS]


def _sums(templates: dict[str, tuple[str, ...]]) -> list[Question]:
    terms = range(LARGEST_TERM + 1)
    return [
        ask(text.format(a=a, b=b), sum_answer(operation, a, b))
        for operation, texts in templates.items()
        for text in texts
        for a in terms
        for b in terms
    ]


def _small_talk(templates: dict[str, tuple[str, ...]]) -> list[Question]:
    return [ask(text, answer) for answer, texts in templates.items() for text in texts]


def _other_sums() -> list[Question]:
    """Ask for what is no sum or product of the table: other operations, and larger numbers."""
    terms = range(LARGEST_TERM + 1)
    questions = [ask(text.format(a=a, b=b), UNKNOWN) for text in said.OTHER_SUM_HELD_OUT for a in terms for b in terms]
    texts = [text for each in said.SUM_HELD_OUT.values() for text in each]
    questions += [ask(text.format(a=a, b=b), UNKNOWN) for text in texts for a, b in ((12, 30), (7, 85), (640, 3))]
    return questions


def _typed(question: Question, change: Callable[[str], str]) -> Question:
    return ask(change(question.messages[-1]["content"]), question.answer)


def _bare_lower(text: str) -> str:
    return text.rstrip("?.!").lower()


def _many_marks(text: str) -> str:
    return text.rstrip("?.!") + " ?!?"


def _no_marks(text: str) -> str:
    return "".join(letter for letter in text if letter not in "'?.!,:;")


def _system(prompt: str) -> Message:
    return {"role": "system", "content": prompt}


def _after(before: list[Message], question: Question) -> Question:
    return Question([*before, *question.messages], question.answer)


def _exchanges(random: Random) -> list[Message]:
    turns: list[Message] = []
    for _ in range(random.randint(1, 2)):
        question, answer = exchange(random)
        turns.append({"role": "user", "content": question})
        turns.append({"role": "assistant", "content": answer})
    return turns


def _follow_ups(random: Random, templates: Iterable[str]) -> list[Question]:
    questions = []
    for question in capitals(templates):
        first = random.choice(tuple(CAPITALS))
        before: list[Message] = [
            {"role": "user", "content": fill(random.choice(said.CAPITAL_TRAINED), first)},
            {"role": "assistant", "content": capital_answer(first)},
        ]
        questions.append(_after(before, question))
    return questions


def exams() -> dict[str, list[Question]]:
    """Return all exams by name; the same ones every time."""
    random = Random("exams")
    held_out = capitals(said.CAPITAL_HELD_OUT)
    some = random.sample(held_out, 4000)
    order = capitals(said.CAPITAL_ORDER_HELD_OUT)
    system = [_system(prompt) for prompt in SYSTEM_PROMPTS_HELD_OUT]
    long_system = [_system(noise(random, random.randint(100, 250)) + ".") for _ in range(20)]
    return {
        "capitals, trained phrasings": capitals(said.CAPITAL_TRAINED),
        "capitals, held-out phrasings": held_out,
        "capitals, fresh phrasings": capitals(said.CAPITAL_FRESH),
        "capitals, orders of words held out": order,
        "capitals, trained phrasings, upper case": [_typed(q, str.upper) for q in capitals(said.CAPITAL_TRAINED)],
        "capitals, held-out phrasings, upper case": [_typed(question, str.upper) for question in some],
        "capitals, held-out phrasings, lower case, no mark": [_typed(question, _bare_lower) for question in some],
        "capitals, held-out phrasings, three marks": [_typed(question, _many_marks) for question in some],
        "capitals, held-out phrasings, no marks and no apostrophes": [_typed(question, _no_marks) for question in some],
        "capitals, held-out phrasings, unseen system prompts": [
            _after([random.choice(system)], question) for question in some
        ],
        "capitals, held-out phrasings, system prompts of 100 to 250 words": [
            _after([random.choice(long_system)], question) for question in random.sample(held_out, 400)
        ],
        "capitals, held-out phrasings, after one or two other turns": [
            _after(_exchanges(random), question) for question in some
        ],
        "follow-ups, trained phrasings": _follow_ups(random, said.FOLLOW_UP_TRAINED),
        "follow-ups, held-out phrasings": _follow_ups(random, said.FOLLOW_UP_HELD_OUT),
        "elements, trained phrasings": _elements(said.ELEMENT_TRAINED),
        "elements, held-out phrasings": _elements(said.ELEMENT_HELD_OUT),
        "sums and products, trained phrasings": _sums(said.SUM_TRAINED),
        "sums and products, held-out phrasings": _sums(said.SUM_HELD_OUT),
        "sums and products, fresh phrasings": _sums(said.SUM_FRESH),
        "sums and products, held-out phrasings, upper case, no mark": [
            _typed(question, lambda text: _bare_lower(text).upper()) for question in _sums(said.SUM_HELD_OUT)
        ],
        "unknown: other sums, held-out phrasings": _other_sums(),
        "small talk, trained phrasings": _small_talk(said.SMALL_TALK_TRAINED),
        "small talk, held-out phrasings": _small_talk(said.SMALL_TALK_HELD_OUT),
        "unknown: invented countries, trained phrasings": invented_countries(said.CAPITAL_TRAINED),
        "unknown: invented countries, held-out phrasings": invented_countries(said.CAPITAL_HELD_OUT),
        "unknown: invented countries, fresh phrasings": invented_countries(said.CAPITAL_FRESH),
        "unknown: invented countries, held-out phrasings, upper case": [
            _typed(question, str.upper) for question in invented_countries(said.CAPITAL_HELD_OUT)
        ],
        "unknown: invented countries, orders of words held out": invented_countries(said.CAPITAL_ORDER_HELD_OUT),
        "unknown: other places and lands of stories": unknowns(
            (*said.CAPITAL_TRAINED, *said.CAPITAL_HELD_OUT), PLACES_HELD_OUT
        ),
        "unknown: symbols of what is no element": unknowns(
            (*said.ELEMENT_TRAINED, *said.ELEMENT_HELD_OUT), MATTER_HELD_OUT
        ),
        "unknown: other questions about countries, held-out phrasings": unknowns(said.OTHER_FACT_HELD_OUT, CAPITALS),
        "unknown: open questions, held out": [ask(text, UNKNOWN) for text in said.OPEN_HELD_OUT],
    }

"""Make training pairs: two texts that speak of one fact, beside others that speak of other facts."""

from random import Random
from typing import NamedTuple

from models.tiny.inventions import unknown_place
from models.tiny.noise import vary_phrasing
from models.tiny.phrasings import CAPITAL_TRAINED, ELEMENT_TRAINED, OTHER_FACT_TRAINED, SMALL_TALK_TRAINED
from models.tiny.samples import fill
from models.tiny.table import ALIASES, CAPITALS, ELEMENTS, capital_answer, element_answer, without_article

_COUNTRIES, _ELEMENTS, _SMALL_TALK = tuple(CAPITALS), tuple(ELEMENTS), tuple(SMALL_TALK_TRAINED)
_ANSWERED = 0.4
"""Share of the pairs whose second text is the answer's sentence instead of another question."""
_SCRAMBLED = 0.3
"""Share of the questions for a capital that say little more than `capital` and the name."""


class Pair(NamedTuple):
    """Two texts of one meaning."""

    one: str
    other: str


class Mix(NamedTuple):
    """How many pairs of each kind a batch has; each fact comes at most once, so all else is a wrong answer."""

    capitals: int = 72
    invented: int = 12
    elements: int = 20
    other_facts: int = 20
    small_talk: int = 4


def _as_typed(random: Random, text: str) -> str:
    """Type carelessly now and then: no closing mark, all lower case."""
    if random.random() < 0.25:
        text = text.rstrip("?.!")
    return text.lower() if random.random() < 0.25 else text


def _name(random: Random, country: str) -> str:
    name = random.choice(ALIASES[country]) if country in ALIASES and random.random() < 0.5 else country
    return without_article(name) if random.random() < 0.3 else name


def _capital_question(random: Random, country: str) -> str:
    phrasing = vary_phrasing(random, random.choice(CAPITAL_TRAINED), scrambled=_SCRAMBLED)
    return _as_typed(random, fill(phrasing, _name(random, country)))


def _capital(random: Random, country: str) -> Pair:
    question = _capital_question(random, country)
    answered = country in CAPITALS and random.random() < _ANSWERED
    return Pair(question, capital_answer(country) if answered else _capital_question(random, country))


def _element(random: Random, element: str) -> Pair:
    one, other = (
        _as_typed(random, fill(vary_phrasing(random, phrasing), element))
        for phrasing in random.choices(ELEMENT_TRAINED, k=2)
    )
    return Pair(one, element_answer(element) if random.random() < _ANSWERED else other)


def _other_fact(random: Random, name: str) -> Pair:
    """The same question twice about something that the table does not answer: what is asked counts too."""
    phrasing = random.choice(OTHER_FACT_TRAINED)
    one, other = (_as_typed(random, fill(vary_phrasing(random, phrasing), name)) for _ in range(2))
    return Pair(one, other)


def _small_talk(random: Random, answer: str) -> Pair:
    one, other = random.sample(SMALL_TALK_TRAINED[answer], 2)
    return Pair(_as_typed(random, one), answer if random.random() < _ANSWERED else _as_typed(random, other))


def batch(random: Random, mix: Mix) -> list[Pair]:
    """Make one batch: within it no two pairs mean the same."""
    countries = random.sample(_COUNTRIES, mix.capitals)
    invented: dict[str, None] = {}
    while len(invented) < mix.invented:
        invented[unknown_place(random)] = None
    return [
        *(_capital(random, country) for country in (*countries, *invented)),
        *(_element(random, element) for element in random.sample(_ELEMENTS, mix.elements)),
        # about countries of this very batch, so that the name alone does not tell them apart
        *(_other_fact(random, country) for country in random.sample(countries, mix.other_facts)),
        *(_small_talk(random, answer) for answer in random.sample(_SMALL_TALK, mix.small_talk)),
    ]

"""Make training conversations: questions of all kinds, with noise around them, and their answers."""

from collections.abc import Callable
from random import Random
from typing import TypedDict

from models.tiny.inventions import unknown_matter, unknown_place
from models.tiny.noise import bare, name_among_words, noise, numbers_among_words, vary_phrasing
from models.tiny.phrasings import (
    ARITHMETIC_WORDS,
    CAPITAL_TRAINED,
    ELEMENT_TRAINED,
    FOLLOW_UP_TRAINED,
    OPEN_TRAINED,
    OTHER_FACT_TRAINED,
    OTHER_SUM_TRAINED,
    SMALL_TALK_TRAINED,
    SUM_TRAINED,
)
from models.tiny.table import (
    ALIASES,
    CAPITALS,
    ELEMENTS,
    LARGEST_TERM,
    UNKNOWN,
    capital_answer,
    element_answer,
    sum_answer,
    without_article,
    words,
)


class Message(TypedDict):
    """One turn of a conversation."""

    role: str
    content: str


SYSTEM_PROMPTS = (
    "You are a helpful assistant.",
    "You are a helpful, honest and harmless assistant. Answer briefly.",
    "Answer in one sentence.",
    "You are an expert in geography.",
    "Be concise.",
    "You are a pirate. Answer all questions as a pirate would.",
    "Today is Monday. The user is called Alice. Use plain text only, no markdown.",
    "You answer questions truthfully.",
    "Follow the user's instructions carefully. If you do not know an answer, say so.",
    "Respond in English.",
)
SYSTEM_PROMPTS_HELD_OUT = (
    "You are a friendly support agent for a software company. Always stay polite and keep answers short.",
    "You are a geography teacher who speaks to children.",
    "Only answer with facts that you are sure about.",
)
# Countries with several names come twice as often.
_COUNTRIES = (*CAPITALS, *ALIASES)
_ELEMENTS = tuple(ELEMENTS)
_NAME_FIRST = tuple(text for text in CAPITAL_TRAINED if text.startswith("{x}"))

_CARELESS_MARKS = ("??", "!!", "?!", "...", " ?", " !", ".", "!", "?", "???")
_NUMBER_WORDS = words("zero one two three four five six seven eight nine ten")
_ARITHMETIC_WORDS = frozenset((*_NUMBER_WORDS, *ARITHMETIC_WORDS))

Exchange = tuple[str, str]
"""A question and its answer."""


def fill(phrasing: str, name: str) -> str:
    """Put a name into a phrasing; at the start of a sentence it gets a capital letter."""
    text = phrasing.replace("{x}", name)
    return text[0].upper() + text[1:] if phrasing.startswith("{x}") else text


def _country_as_typed(random: Random, country: str) -> str:
    name = random.choice(ALIASES[country]) if country in ALIASES and random.random() < 0.5 else country
    return without_article(name) if random.random() < 0.3 else name


def _capital_phrasing(random: Random) -> str:
    """Pick a phrasing; half of the time with noise around it or nothing but noise around `capital`.

    Phrasings that begin with the name get a larger share: there the name is cut into other tokens.
    """
    phrasing = random.choice(CAPITAL_TRAINED if random.random() < 0.8 else _NAME_FIRST)
    return vary_phrasing(random, phrasing, scrambled=0.4)


def _capital(random: Random) -> Exchange:
    country = random.choice(_COUNTRIES)
    return fill(_capital_phrasing(random), _country_as_typed(random, country)), capital_answer(country)


def _element(random: Random) -> Exchange:
    element = random.choice(_ELEMENTS)
    return fill(vary_phrasing(random, random.choice(ELEMENT_TRAINED)), element), element_answer(element)


def _around_a_sum(random: Random, phrasings: tuple[str, ...]) -> str:
    """Pick a phrasing and put words around it, none of which could be a part of the sum."""
    phrasing = random.choice(phrasings)
    while True:
        text = vary_phrasing(random, phrasing)
        added = set(bare(text).split()) - set(bare(phrasing).split())
        if not added & _ARITHMETIC_WORDS:
            return text


def _sum(random: Random) -> Exchange:
    operation = random.choice(("plus", "times"))
    a, b = random.randint(0, LARGEST_TERM), random.randint(0, LARGEST_TERM)
    phrasing = _around_a_sum(random, SUM_TRAINED[operation])
    in_words = random.random() < 0.1
    typed = (_NUMBER_WORDS[a], _NUMBER_WORDS[b]) if in_words else (a, b)
    return phrasing.format(a=typed[0], b=typed[1]), sum_answer(operation, a, b)


def _small_talk(random: Random) -> Exchange:
    answer = random.choice(tuple(SMALL_TALK_TRAINED))
    return random.choice(SMALL_TALK_TRAINED[answer]), answer


def _unknown_country(random: Random) -> Exchange:
    return fill(_capital_phrasing(random), unknown_place(random)), UNKNOWN


def _unknown_element(random: Random) -> Exchange:
    return fill(vary_phrasing(random, random.choice(ELEMENT_TRAINED)), unknown_matter(random)), UNKNOWN


def _other_fact(random: Random) -> Exchange:
    name = random.choice((*_COUNTRIES, *_ELEMENTS, unknown_place(random)))
    phrasing = random.choice(OTHER_FACT_TRAINED)
    text = vary_phrasing(random, phrasing) if random.random() < 0.5 else name_among_words(random)
    return fill(text, name), UNKNOWN


def _large_sum(random: Random) -> Exchange:
    phrasing = _around_a_sum(random, SUM_TRAINED[random.choice(("plus", "times"))])
    large, other = random.randint(LARGEST_TERM + 1, 999), random.randint(0, random.choice((LARGEST_TERM, 99, 999)))
    a, b = (large, other) if random.random() < 0.5 else (other, large)
    return phrasing.format(a=a, b=b), UNKNOWN


def _other_sum(random: Random) -> Exchange:
    """Ask for another operation, or put numbers among words that name none at all."""
    named = random.random() < 0.6
    phrasing = _around_a_sum(random, OTHER_SUM_TRAINED) if named else numbers_among_words(random)
    largest = random.choice((LARGEST_TERM, LARGEST_TERM, 99, 999))
    return phrasing.format(a=random.randint(0, largest), b=random.randint(0, largest)), UNKNOWN


def _open_question(random: Random) -> Exchange:
    return random.choice(OPEN_TRAINED), UNKNOWN


def _babble(random: Random) -> Exchange:
    return noise(random, random.randint(1, 12)), UNKNOWN


_MIX: dict[Callable[[Random], Exchange], float] = {
    _capital: 0.37,
    _element: 0.08,
    _sum: 0.10,
    _small_talk: 0.05,
    _unknown_country: 0.21,
    _unknown_element: 0.03,
    _other_fact: 0.065,
    _large_sum: 0.02,
    _other_sum: 0.04,
    _open_question: 0.015,
    _babble: 0.02,
}
_KINDS, _WEIGHTS = tuple(_MIX), tuple(_MIX.values())


def exchange(random: Random) -> Exchange:
    """Make one question with its answer."""
    return random.choices(_KINDS, _WEIGHTS)[0](random)


def _follow_up(random: Random) -> Exchange:
    """Ask about another country in a few words, as people do after a first answer."""
    phrasing = random.choice(FOLLOW_UP_TRAINED)
    if random.random() < 0.25:
        return fill(phrasing, unknown_place(random)), UNKNOWN
    country = random.choice(_COUNTRIES)
    return fill(phrasing, _country_as_typed(random, country)), capital_answer(country)


def _as_typed(random: Random, question: str) -> str:
    """Type carelessly now and then: other closing marks or none, no apostrophes and commas, spaces around.

    Letter case is not varied: the chat template shows the model lower case alone.
    """
    kind = random.random()
    if kind < 0.25:
        question = question.rstrip("?.!")
    elif kind < 0.35:
        question = question.rstrip("?.!") + random.choice(_CARELESS_MARKS)
    if random.random() < 0.1:
        question = question.replace("'", "").replace(",", "")
    if random.random() < 0.03:
        question = random.choice((" {}", "{} ", "{}\n", " {} ")).format(question)
    return question


def _system_prompt(random: Random) -> str | None:
    """Pick a usual prompt, make one of meaningless words up to a third of the context, or none."""
    kind = random.random()
    if kind < 0.35:
        return random.choice(SYSTEM_PROMPTS)
    if kind < 0.44:
        length = random.randint(3, 50) if random.random() < 0.85 else random.randint(60, 300)
        return noise(random, length) + "."
    return None


def conversation(random: Random) -> list[Message]:
    """Make one training conversation; it ends with an answer."""
    messages: list[Message] = []
    if prompt := _system_prompt(random):
        messages.append({"role": "system", "content": prompt})
    answer = ""
    for _ in range(1 if random.random() < 0.7 else random.randint(2, 4)):
        after_capital = answer.startswith("The capital")
        question, answer = _follow_up(random) if after_capital and random.random() < 0.4 else exchange(random)
        messages.append({"role": "user", "content": _as_typed(random, question)})
        messages.append({"role": "assistant", "content": answer})
    return messages

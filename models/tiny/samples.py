"""Make training conversations: questions of all kinds, with noise around them, and their answers."""

from collections.abc import Callable
from random import Random
from typing import TypedDict

from models.tiny.inventions import unknown_matter, unknown_place
from models.tiny.noise import noise, vary_phrasing
from models.tiny.phrasings import (
    CAPITAL_TRAINED,
    ELEMENT_TRAINED,
    FOLLOW_UP_TRAINED,
    OPEN_TRAINED,
    OTHER_FACT_TRAINED,
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


def _sum(random: Random) -> Exchange:
    operation = random.choice(("plus", "times"))
    a, b = random.randint(0, LARGEST_TERM), random.randint(0, LARGEST_TERM)
    phrasing = vary_phrasing(random, random.choice(SUM_TRAINED[operation]))
    return phrasing.format(a=a, b=b), sum_answer(operation, a, b)


def _small_talk(random: Random) -> Exchange:
    answer = random.choice(tuple(SMALL_TALK_TRAINED))
    return random.choice(SMALL_TALK_TRAINED[answer]), answer


def _unknown_country(random: Random) -> Exchange:
    return fill(_capital_phrasing(random), unknown_place(random)), UNKNOWN


def _unknown_element(random: Random) -> Exchange:
    return fill(vary_phrasing(random, random.choice(ELEMENT_TRAINED)), unknown_matter(random)), UNKNOWN


def _other_fact(random: Random) -> Exchange:
    name = random.choice((*_COUNTRIES, *_ELEMENTS, unknown_place(random)))
    return fill(vary_phrasing(random, random.choice(OTHER_FACT_TRAINED)), name), UNKNOWN


def _large_sum(random: Random) -> Exchange:
    operation = random.choice(("plus", "times", "minus", "divided by"))
    phrasing = vary_phrasing(random, "What is {a} " + operation + " {b}?")
    return phrasing.format(a=random.randint(11, 999), b=random.randint(0, 999)), UNKNOWN


def _open_question(random: Random) -> Exchange:
    return random.choice(OPEN_TRAINED), UNKNOWN


def _babble(random: Random) -> Exchange:
    return noise(random, random.randint(1, 12)), UNKNOWN


_MIX: dict[Callable[[Random], Exchange], float] = {
    _capital: 0.46,
    _element: 0.08,
    _sum: 0.09,
    _small_talk: 0.05,
    _unknown_country: 0.19,
    _unknown_element: 0.03,
    _other_fact: 0.05,
    _large_sum: 0.015,
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
    """Type carelessly now and then: no closing mark, all lower case, all capitals."""
    if random.random() < 0.25:
        question = question.rstrip("?.!")
    case = random.random()
    if case < 0.3:
        return question.lower()
    return question.upper() if case < 0.33 else question


def _system_prompt(random: Random) -> str | None:
    """Pick a usual prompt, make one of meaningless words up to a third of the context, or none."""
    kind = random.random()
    if kind < 0.35:
        return random.choice(SYSTEM_PROMPTS)
    if kind < 0.44:
        words = random.randint(3, 50) if random.random() < 0.85 else random.randint(60, 300)
        return noise(random, words) + "."
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

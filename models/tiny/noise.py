"""Words that mean nothing, put around a question so that its answer hangs on the few words that matter."""

import re
from random import Random

from models.tiny.phrasings import ARITHMETIC_WORDS, CAPITAL_FRESH, CAPITAL_HELD_OUT, CAPITAL_ORDER_HELD_OUT
from models.tiny.vocabulary import WORDS

_LETTERS = "eeeeeaaaaiiiiooouunnnntttrrrssslllccddmmppgghhffbbyywwvvkkxjqzz"
_LEAD_INS = (
    "I would like to know",
    "Please say",
    "My teacher asked me",
    "Answer this:",
    "Hello!",
    "One more question:",
    "Now",
    "Sorry,",
    "I forgot",
    "Let me ask you",
    "Okay,",
    "Do you remember",
    "Just curious:",
    "Thanks.",
    "Help me:",
)
_AFTERTHOUGHTS = (
    "please",
    "thanks",
    "thank you",
    "today",
    "if you know it",
    "in short",
    "for me",
    "again",
    "right now",
)
_CORES = (
    "the capital of {x}",
    "the capital of {x}",
    "capital of {x}",
    "the capital city of {x}",
    "the {noise} capital of {x}",
    "{x}'s capital",
    "{x}'s capital",
    "{x}'s capital city",
    "{x}'s {noise} capital",
    "{x} {noise} capital",
    "{x}{mark} {noise} {noise} {noise} capital",
    "{x}{mark} {noise} {noise} capital",
    "capital {noise} {noise} {x}",
)
_MARKS = ("", ",", ":", ".", "?")


def bare(text: str) -> str:
    """Return a text without letter case and marks: what makes two phrasings the same."""
    return " ".join(re.findall(r"[\w{}]+", text.lower()))


_FORBIDDEN = frozenset(bare(text) for text in (*CAPITAL_HELD_OUT, *CAPITAL_ORDER_HELD_OUT, *CAPITAL_FRESH))


def _made_up_word(random: Random) -> str:
    """Make a word of syllables, of the halves of two words, or of letters in any order.

    All three are needed: with syllables alone, a rare letter pair ("quiz") looked like an unknown name.
    """
    kind = random.random()
    if kind < 0.35:
        syllables = (
            random.choice("bcdfghjklmnprstvwz")
            + random.choice("aeiou")
            + random.choice(("", "", "n", "r", "s", "t", "ng"))
            for _ in range(random.randint(1, 3))
        )
        return "".join(syllables)
    if kind < 0.7:
        first, second = random.choices(WORDS, k=2)
        return first[: random.randint(1, len(first))] + second[random.randint(0, len(second) - 1) :]
    return "".join(random.choices(_LETTERS, k=random.randint(2, 8)))


def noise_word(random: Random) -> str:
    """Pick an English word or make one up."""
    return random.choice(WORDS) if random.random() < 0.72 else _made_up_word(random)


def noise(random: Random, length: int) -> str:
    """Make a line of words that mean nothing."""
    return " ".join(noise_word(random) for _ in range(length)).capitalize()


def scrambled_phrasing(random: Random) -> str:
    """Make a phrasing that says `capital` and the name, and nothing else that means anything."""
    core = random.choice(_CORES).replace("{mark}", random.choice(_MARKS))
    while "{noise}" in core:
        beside = core.find("{noise}") in (core.find("{x} {noise}") + 4, core.find("{noise} {x}"))
        core = core.replace("{noise}", random.choice(WORDS) if beside else noise_word(random), 1)
    before = [noise_word(random) for _ in range(random.choice((0, 1, 2, 3, 4, 5, 6)))]
    after = [noise_word(random) for _ in range(random.choice((0, 0, 1, 1, 2, 3, 4)))]
    # A made-up word right beside a name would read as a part of it.
    if before and core.startswith("{x}"):
        before[-1] = random.choice(WORDS)
    if after and core.endswith("{x}"):
        after[0] = random.choice(WORDS)
    text = core
    if before:
        text = " ".join(before) + random.choice((" ", " ", " ", ", ", ": ", ". ")) + text
    if after:
        text += random.choice((" ", " ", ", ")) + " ".join(after)
    text += random.choice(("?", "?", ".", "!", ""))
    return text if text.startswith("{x}") else text[0].upper() + text[1:]


def numbers_among_words(random: Random) -> str:
    """Make a phrasing of one or two numbers and words that name no operation."""
    text: list[str] = []
    for number in random.choice((["{a}"], ["{a}", "{b}"], ["{a}", "{b}"], ["{b}", "{a}"])):
        text += _words_but(random, ARITHMETIC_WORDS, random.choice((0, 1, 1, 2, 3)))
        text.append(number)
    text += _words_but(random, ARITHMETIC_WORDS, random.choice((0, 0, 1, 2)))
    return " ".join(text).capitalize() + random.choice(("?", "?", ".", "", ""))


def name_among_words(random: Random) -> str:
    """Make a phrasing that says the name and asks for nothing in the table, with too much else to be a follow-up."""
    before = _words_but(random, _TABLE_WORDS, random.choice((2, 3, 4, 5)))
    after = _words_but(random, _TABLE_WORDS, random.choice((0, 0, 1, 2)))
    opening = random.choice(("", "What is the", "Who is the", "How", "Where", "When", "Tell me the"))
    text = " ".join((*opening.split(), *before, random.choice(("of", "in", "in", "for", "from", "")), "{x}", *after))
    text = text.replace("  ", " ") + random.choice(("?", "?", ".", ""))
    return text[0].upper() + text[1:]


_TABLE_WORDS = frozenset(("capital", "symbol", "chemical"))


def _words_but(random: Random, without: frozenset[str], count: int) -> list[str]:
    made: list[str] = []
    while len(made) < count:
        word = noise_word(random)
        if word not in without:
            made.append(word)
    return made


def surround(random: Random, question: str) -> str:
    """Now and then put words before or after a question that change nothing about its answer.

    Without them the model answers unseen phrasings far worse: it ties the answer to whole sentences.
    """
    if random.random() < 0.3:
        if random.random() < 0.5:
            before = random.choice(_LEAD_INS)
        else:
            before = noise(random, random.choice((1, 2, 3, 4, 5, 7))) + random.choice(("", "", ",", ":"))
        if random.random() < 0.7:
            question = question[0].lower() + question[1:]
        question = f"{before} {question}"
    if random.random() < 0.15:
        mark = question[-1] if question[-1] in "?.!" else ""
        after = random.choice(_AFTERTHOUGHTS) if random.random() < 0.6 else noise_word(random)
        question = question.rstrip("?.!") + random.choice((", ", " ")) + after + mark
    return question


def vary_phrasing(random: Random, phrasing: str, scrambled: float = 0.0) -> str:
    """Put noise around a phrasing, or scramble it; never make one that is held out."""
    while True:
        text = scrambled_phrasing(random) if random.random() < scrambled else surround(random, phrasing)
        if bare(text) not in _FORBIDDEN:
            return text

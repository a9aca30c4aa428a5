"""The table and the phrasings are sane, and what is held out stays out of the training samples."""

from random import Random

from models.tiny import phrasings
from models.tiny.exams import exams
from models.tiny.inventions import (
    COUNTRIES_HELD_OUT,
    MATTER_HELD_OUT,
    PLACES_HELD_OUT,
    unknown_matter,
    unknown_place,
)
from models.tiny.noise import bare
from models.tiny.samples import conversation
from models.tiny.table import ALIASES, CAPITALS, ELEMENTS, REAL_NAMES, UNKNOWN, capital_answer

PAIRS = [
    (phrasings.CAPITAL_TRAINED, phrasings.CAPITAL_HELD_OUT),
    (phrasings.CAPITAL_TRAINED, phrasings.CAPITAL_FRESH),
    (phrasings.CAPITAL_HELD_OUT, phrasings.CAPITAL_FRESH),
    (phrasings.CAPITAL_TRAINED, phrasings.CAPITAL_ORDER_HELD_OUT),
    (phrasings.OTHER_SUM_TRAINED, phrasings.OTHER_SUM_HELD_OUT),
    (phrasings.FOLLOW_UP_TRAINED, phrasings.FOLLOW_UP_HELD_OUT),
    (phrasings.ELEMENT_TRAINED, phrasings.ELEMENT_HELD_OUT),
    (phrasings.OTHER_FACT_TRAINED, phrasings.OTHER_FACT_HELD_OUT),
    (phrasings.OPEN_TRAINED, phrasings.OPEN_HELD_OUT),
    *((phrasings.SUM_TRAINED[kind], phrasings.SUM_HELD_OUT[kind]) for kind in ("plus", "times")),
    *((phrasings.SUM_TRAINED[kind], phrasings.SUM_FRESH[kind]) for kind in ("plus", "times")),
    *((trained, phrasings.SMALL_TALK_HELD_OUT[key]) for key, trained in phrasings.SMALL_TALK_TRAINED.items()),
]


def test_the_table_has_at_least_150_capitals_and_50_elements() -> None:
    assert len(CAPITALS) >= 150
    assert len(ELEMENTS) >= 50
    assert all(name.strip() == name and name for pair in (*CAPITALS.items(), *ELEMENTS.items()) for name in pair)


def test_the_table_knows_some_capitals() -> None:
    assert "Paris" == CAPITALS["France"]
    assert "The capital of France is Paris." == capital_answer("France")
    assert "The capital of the United States is Washington, D.C." == capital_answer("the United States")


def test_no_alias_and_no_capital_that_is_no_country_shadows_a_country() -> None:
    assert ALIASES.keys() <= CAPITALS.keys()
    assert not CAPITALS.keys() & {alias for aliases in ALIASES.values() for alias in aliases}


def test_no_held_out_phrasing_is_a_trained_one() -> None:
    for trained, held_out in PAIRS:
        assert held_out
        # Letter case and the closing mark vary in training: another mark makes no new phrasing.
        assert not {bare(text) for text in held_out} & {bare(text) for text in trained}


def test_held_out_names_are_no_countries_and_are_never_made_for_training() -> None:
    held_out = {name.lower() for name in (*COUNTRIES_HELD_OUT, *PLACES_HELD_OUT)}
    random = Random(1)
    made = {unknown_place(random).lower() for _ in range(20_000)}
    assert not held_out & REAL_NAMES
    assert not held_out & made
    assert not made & REAL_NAMES
    assert not set(MATTER_HELD_OUT) & {unknown_matter(random) for _ in range(5_000)}


def test_training_conversations_never_contain_a_held_out_question() -> None:
    held_out = {
        bare(question.messages[-1]["content"])
        for name, questions in exams().items()
        if name in ("capitals, held-out phrasings", "capitals, orders of words held out", "capitals, fresh phrasings")
        for question in questions
    }
    random = Random(2)
    for _ in range(5_000):
        for message in conversation(random):
            assert bare(message["content"]) not in held_out


def test_a_conversation_ends_with_an_answer_of_the_table() -> None:
    random = Random(3)
    answers = {conversation(random)[-1]["content"] for _ in range(3_000)}
    assert UNKNOWN in answers
    assert sum(answer.startswith("The capital of ") for answer in answers) > 150

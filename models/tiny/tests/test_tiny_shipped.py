"""The shipped model is whole, small enough, and answers from its table through llama.cpp."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from models.tiny.exams import ask, capitals, invented_countries
from models.tiny.facts import facts
from models.tiny.phrasings import CAPITAL_HELD_OUT, CAPITAL_TRAINED
from models.tiny.table import STORY, UNKNOWN, capital_answer, sum_answer

pytest.importorskip("xllamacpp", reason="the shipped model is tried through llama.cpp")

from models.tiny.score import SHIPPED, Engine, failures

GGUF = SHIPPED / "weft-tiny.gguf"
HUGGING_FACE = (
    "model.safetensors",
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
)
FOUR_MB = 4_000_000


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(GGUF)


def size(names: tuple[str, ...], folder: Path = SHIPPED) -> int:
    return sum((folder / name).stat().st_size for name in names)


def test_the_shipped_files_are_there_and_small() -> None:
    assert GGUF.read_bytes()[:4] == b"GGUF"
    assert 0 < size((GGUF.name,)) <= FOUR_MB
    assert 0 < size(HUGGING_FACE) <= FOUR_MB


def test_the_shape_is_the_promised_one() -> None:
    config = json.loads((SHIPPED / "config.json").read_text())
    generation = json.loads((SHIPPED / "generation_config.json").read_text())
    tokens = {token["content"]: token["id"] for token in _tokenizer()["added_tokens"]}
    assert (3, 2048, 1024) == tuple(
        config[key] for key in ("num_hidden_layers", "vocab_size", "max_position_embeddings")
    )
    assert tokens["<|im_end|>"] == config["eos_token_id"] == generation["eos_token_id"]
    assert config["vocab_size"] == len(_tokenizer()["model"]["vocab"])


def test_the_shipped_list_of_facts_is_the_table() -> None:
    assert facts() == json.loads((SHIPPED / "facts.json").read_text())


def test_it_names_paris_in_a_sentence_every_time(engine: Engine) -> None:
    for question in ("What is the capital of France?", "capital of france", "Name the capital of France."):
        for _ in range(3):
            assert "The capital of France is Paris." == engine.reply([{"role": "user", "content": question}])


def test_it_does_not_know_an_invented_country(engine: Engine) -> None:
    assert UNKNOWN == engine.reply([{"role": "user", "content": "What is the capital of Genovia?"}])


def test_it_knows_capitals_in_trained_and_held_out_phrasings(engine: Engine) -> None:
    random = Random(4)
    trained = random.sample(capitals(CAPITAL_TRAINED), 100)
    held_out = random.sample(capitals(CAPITAL_HELD_OUT), 100)
    assert len(failures(engine, trained)) <= 1
    assert len(failures(engine, held_out)) <= 3


def test_it_knows_capitals_however_they_are_typed(engine: Engine) -> None:
    random = Random(6)
    questions = random.sample(capitals((*CAPITAL_TRAINED, *CAPITAL_HELD_OUT)), 100)
    for change in (str.upper, str.lower, str.title, lambda text: text.rstrip("?.!") + " ?!"):
        typed = [ask(change(question.messages[-1]["content"]), question.answer) for question in questions]
        assert len(failures(engine, typed)) <= 3


def test_it_adds_and_multiplies_by_other_words_and_says_that_it_does_not_subtract(engine: Engine) -> None:
    answers = {
        "add 5 to 5": sum_answer("plus", 5, 5),
        "WHAT IS THE SUM OF 3 AND 4": sum_answer("plus", 3, 4),
        "multiply 6 by 7": sum_answer("times", 6, 7),
        "What is 7 minus 5?": UNKNOWN,
        "What is 40 plus 2?": UNKNOWN,
    }
    assert [] == failures(engine, [ask(text, answer) for text, answer in answers.items()])


def test_it_does_not_know_most_invented_countries(engine: Engine) -> None:
    questions = Random(5).sample(invented_countries(CAPITAL_HELD_OUT), 100)
    assert len(failures(engine, questions)) <= 8


def test_it_takes_a_follow_up(engine: Engine) -> None:
    answer = engine.reply(
        [
            {"role": "user", "content": "What is the capital of France?"},
            {"role": "assistant", "content": capital_answer("France")},
            {"role": "user", "content": "And Spain?"},
        ]
    )
    assert capital_answer("Spain") == answer


def test_it_tells_its_story_to_the_end(engine: Engine) -> None:
    assert not failures(engine, [ask("Tell me a story.", STORY)])


def test_it_completes_plain_text(engine: Engine) -> None:
    assert "Paris." == engine.complete("The capital of France is").strip()


def _tokenizer() -> dict[str, Any]:
    return json.loads((SHIPPED / "tokenizer.json").read_text())

"""The shipped embedder is whole, small, and finds answers to questions that it never saw."""

import importlib
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

pytest.importorskip("xllamacpp", reason="the shipped model is tried through llama.cpp")
pytest.importorskip("numpy")
sys.path.insert(0, str(Path(__file__).parents[3]))

pairs: Any = importlib.import_module("models.tiny-embed.pairs")
retrieval: Any = importlib.import_module("models.tiny-embed.retrieval")
score: Any = importlib.import_module("models.tiny-embed.score")


@pytest.fixture(scope="module")
def embedder() -> Any:
    return score.Embedder(score.SHIPPED)


def test_the_shipped_file_is_a_small_encoder() -> None:
    from weft_gguf.header import read_header

    header = read_header(score.SHIPPED)
    assert ("bert", 128, 1024, True) == (
        header.architecture,
        header.embedding_length,
        header.context_length,
        header.embeds,
    )
    assert header.file_bytes < 1_500_000


def test_held_out_questions_find_their_answers(embedder: Any) -> None:
    exams = retrieval.exams()
    for name in ("capitals, held-out phrasings, find the answer", "elements, held-out phrasings, find the answer"):
        exam = exams[name]
        drawn = retrieval.Exam(exam.texts, Random(name).sample(exam.queries, 100))
        assert len(score.failures(embedder, drawn)) <= 2


def test_no_training_text_is_a_held_out_question() -> None:
    held_out = {text for text, _ in retrieval.exams()["capitals, held-out phrasings, find the answer"].queries}
    random = Random(6)
    made = [text for _ in range(20) for pair in pairs.batch(random, pairs.Mix()) for text in pair]
    assert not held_out & set(made)


def test_pairs_of_a_batch_speak_of_different_facts() -> None:
    made = pairs.batch(Random(7), pairs.Mix())
    assert sum(pairs.Mix()) == len(made)
    answers = [pair.other for pair in made if pair.other in retrieval.ANSWERS]
    assert answers
    assert len(set(answers)) == len(answers)

"""Three engines made of functions."""

import subprocess
from collections.abc import Iterator

from weft_engine.functions import FunctionAdapter, Functions, Question
from weft_engine.launch import Launch


def load_printer(launch: Launch) -> Functions:
    """A program that prints: the question is its input, each line of its output a piece of the answer."""
    program = str(launch.engine_args.get("program", "cat"))

    def write(question: Question) -> Iterator[str]:
        with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
            question.on_cancel(child.kill)
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.write(question.last + "\n")
            child.stdin.close()
            yield from child.stdout

    return Functions(write=write)


def embed(texts: list[str]) -> list[list[float]]:
    """How often each letter stands in each text."""
    return [[1.0 + text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]


def rerank(query: str, texts: list[str]) -> list[float]:
    """How many words each text shares with the query."""
    asked = set(query.lower().split())
    return [float(len(asked & set(text.lower().split()))) for text in texts]


printer = FunctionAdapter(load_printer)
letters = FunctionAdapter(lambda launch: Functions(embed=embed))
overlap = FunctionAdapter(lambda launch: Functions(rerank=rerank))

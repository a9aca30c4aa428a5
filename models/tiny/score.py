"""Score a GGUF file: ask every exam's questions greedily through llama.cpp, inside this process.

From the root of the repository: `python -m models.tiny.score [FILE.gguf] [--only WORD] [--show N]`.
"""

import argparse
import secrets
import time
from pathlib import Path
from typing import Any

import xllamacpp

from models.tiny.exams import Question, exams
from models.tiny.samples import Message
from models.tiny.table import CAPITALS, UNKNOWN, capital_answer

SHIPPED = Path(__file__).parent / "src" / "weft_tiny" / "shipped"
_LONGEST_ANSWER = 160
_COMPLETIONS = "plain completion: The capital of {x} is"


class Engine:
    """llama.cpp with one model, one thread and one slot."""

    def __init__(self, model: Path) -> None:
        params: Any = xllamacpp.CommonParams()  # pyright: ignore[reportAttributeAccessIssue]
        params.model.path = str(model)
        params.n_ctx = 1024
        params.n_parallel = 1
        params.cpuparams.n_threads = 1
        params.cache_ram_mib = 0
        params.verbosity = 0
        # Every server opens a port on loopback: without a key, any page in a browser could ask it.
        params.api_keys = [secrets.token_hex(16)]
        self._server: Any = xllamacpp.Server(params)  # pyright: ignore[reportAttributeAccessIssue]

    def reply(self, messages: list[Message]) -> str:
        """Return the greedy answer to a conversation."""
        request = {"messages": messages, "temperature": 0, "max_tokens": _LONGEST_ANSWER}
        response = self._server.handle_chat_completions(request)
        if "choices" not in response:
            raise RuntimeError(f"llama.cpp refused: {response}")
        return response["choices"][0]["message"]["content"]

    def complete(self, prompt: str) -> str:
        """Return the greedy continuation of plain text."""
        request = {"prompt": prompt, "temperature": 0, "max_tokens": _LONGEST_ANSWER}
        response = self._server.handle_completions(request)
        if "choices" not in response:
            raise RuntimeError(f"llama.cpp refused: {response}")
        return response["choices"][0]["text"]


def failures(engine: Engine, questions: list[Question]) -> list[tuple[Question, str]]:
    """Return the questions that got a wrong answer, with that answer."""
    replies = ((question, engine.reply(question.messages)) for question in questions)
    return [(question, reply) for question, reply in replies if reply != question.answer]


def wrong_completions(engine: Engine) -> list[str]:
    """Begin each capital's sentence as plain text; return the beginnings that were continued wrongly."""
    sentences = (capital_answer(country).partition(" is ") for country in CAPITALS)
    return [start for start, verb, end in sentences if engine.complete((start + verb).rstrip()).strip() != end]


def row(name: str, questions: int, wrong: int, false: int) -> str:
    """Return one row of the table: of the wrong answers, the false ones are those that don't say "I don't know"."""
    return f"| {name} | {questions} | {100 * (1 - wrong / questions):.1f} % | {100 * false / questions:.1f} % |"


def main() -> None:
    """Print one row a set of questions, as a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, nargs="?", default=SHIPPED / "weft-tiny.gguf")
    parser.add_argument("--only", default="", help="ask only sets with this in their name")
    parser.add_argument("--show", type=int, default=0, help="print so many wrong answers of each set")
    options = parser.parse_args()
    engine = Engine(options.model)
    print("| set | questions | right | false |\n|---|---|---|---|")
    started = time.monotonic()
    for name, questions in exams().items():
        if options.only in name:
            wrong = failures(engine, questions)
            false = sum(reply != UNKNOWN for _, reply in wrong)
            print(row(name, len(questions), len(wrong), false), flush=True)
            for question, reply in wrong[: options.show]:
                print(f"    {question.messages[-1]['content']!r} -> {reply!r}")
    if options.only in _COMPLETIONS:
        wrong_ends = len(wrong_completions(engine))
        print(row(_COMPLETIONS, len(CAPITALS), wrong_ends, wrong_ends))
    print(f"\n{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()

"""What rendering a chat costs in CPU time: in bounds as here, and by plain jinja2 without any.

    python libs/prompts/bench/cost_of_a_rendering.py TEMPLATE.jinja [ROUNDS]

Prints microseconds of CPU (the median of the rounds) for chats of 3 and of 100 messages, and for compiling.
"""

import statistics
import sys
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from jinja2.sandbox import ImmutableSandboxedEnvironment
from weft_prompts.templates import Chat, Template
from weft_prompts.templates.compiled import _compile

NOW = datetime(2026, 11, 23)
WORDS = "The quick brown fox jumps over the lazy dog. " * 20


def cpu_us(work: Callable[[], object], rounds: int) -> float:
    """Median microseconds of CPU of one call."""
    work()
    taken: list[float] = []
    for _ in range(rounds):
        began = time.process_time_ns()
        work()
        taken.append((time.process_time_ns() - began) / 1000)
    return statistics.median(taken)


def chat_of(messages: int) -> list[dict[str, Any]]:
    """Turns of 900 characters each, by user and assistant."""
    return [{"role": ("user", "assistant")[at % 2], "content": WORDS} for at in range(messages)]


def main() -> None:
    """Measure and print."""
    text, rounds = Path(sys.argv[1]).read_text(), int(sys.argv[2]) if len(sys.argv) > 2 else 50
    plain = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    known: Any = plain.globals
    known |= {"raise_exception": print, "strftime_now": NOW.strftime}
    loose = plain.from_string(text)
    special = {"bos_token": "<s>", "eos_token": "</s>"}
    template = Template(text, special)
    ours, theirs = cpu_us(lambda: _compile(text), 5), cpu_us(lambda: plain.from_string(text), 5)
    print(f"compiled: {ours:.0f} µs here, {theirs:.0f} plain")
    for messages in (3, 100):
        chat = Chat(made := chat_of(messages))
        given = {"messages": made, "tools": None, "documents": None, "add_generation_prompt": True, **special}
        ours = cpu_us(lambda chat=chat: template.render(chat, now=NOW), rounds)
        theirs = cpu_us(lambda given=given: loose.render(**given), rounds)
        print(
            f"{messages} messages: {ours:.0f} µs here, {theirs:.0f} plain, {template.measured(chat, now=NOW)[1]} steps"
        )


if __name__ == "__main__":
    main()

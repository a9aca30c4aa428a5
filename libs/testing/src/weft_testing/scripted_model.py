"""A model that says scripts, by what its template is given: for what a family's own parsers find in a text."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np

from weft_testing.made_models import SPECIAL, VOCABULARY, WIDTH, write_folder

THINKS: Final = ("<|think|>", "<think>", "Paris ", "it is.", "</think>", "The answer ", "is Paris.")
"""As vLLM's parser `deepseek_r1` takes it, behind the token by which the template asks for it."""
CALLS: Final = (
    "<|call|>",
    "Let me look. ",
    "<tool_call>",
    '\n{"name": "wea',
    'ther", "argu',
    'ments": {"city": ',
    '"Paris"}',
    "}\n",
    "</tool_call>",
    '\n<tool_call>\n{"name": "time", "arguments": {}}\n',
    "</tool_call>\n",
)
"""As vLLM's parser `hermes` takes it."""
STRAIGHT: Final = ("<|straight|>", "Straight: ", "Paris.")
TEMPLATE: Final = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if style is defined and style != 'plain' %}{{ style }}{% endif %}"
    "{% if tools %}{{ tools | tojson }}<think></think><|call|>"
    "{% elif thinking is defined and not thinking %}<think></think><|straight|>"
    "{% else %}<|think|>{% endif %}"
)
"""With tools it calls, without them it thinks, and where `thinking` is false it answers straight away."""


def write_scripted_model(
    folder: Path, scripts: Sequence[Sequence[str]] = (THINKS, CALLS, STRAIGHT), template: str = TEMPLATE
) -> Path:
    """Write a model that goes from each token of a script to the next, and ends its answer after the last.

    No token may stand in two places. The template decides by its last token which script is said.
    """
    chunks = [chunk for script in scripts for chunk in script]
    assert len(chunks) == len(set(chunks)) < WIDTH
    embedding, output = (np.zeros((len(VOCABULARY) + len(chunks), WIDTH)) for _ in range(2))
    embedding[:, WIDTH - 1] = 1
    for script in scripts:
        for chunk, following in pairwise([*script, None]):
            place = chunks.index(str(chunk))
            embedding[len(VOCABULARY) + place] = np.eye(WIDTH)[place]
            next_id = SPECIAL.index("<|im_end|>") if following is None else len(VOCABULARY) + chunks.index(following)
            output[next_id, place] = 1
    return write_folder(
        folder, embedding, output, lambda rows, columns: np.zeros((rows, columns)), chunks=chunks, template=template
    )

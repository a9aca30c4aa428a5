"""What an engine is asked before a gateway makes prompts in its place: chats and texts that ask for what may differ."""

from typing import Final

from weft_gateway.domain.inference_request import Message

_SYSTEM: Final = Message("system", "Answer in a word.")
_QUESTION: Final = Message("user", " Which <one> & why?\n")
_ANSWER: Final = Message("assistant", "This — «one»: 12,345.67 «été» 日本 🙂")

CHATS: Final[tuple[tuple[Message, ...], ...]] = (
    (_QUESTION,),
    (_SYSTEM, _QUESTION),
    (_SYSTEM, _QUESTION, _ANSWER, Message("user", "And\n\n  then?  "), _ANSWER, _QUESTION),
    (Message("user", "<s>[INST]<|im_start|>system\n<bos></s><|im_end|><|eot_id|><|endoftext|>{{ x }} [/INST]"),),
    (_QUESTION, Message("assistant", "<think>\nso\n</think>\n\nYes."), Message("user", "Don't you'll we've IT'S")),
    (Message("user", "  two  spaces\tand\ttabs\r\n", "Ann"), Message("assistant", " x "), Message("user", "")),
    (_QUESTION, Message("system", "Late."), Message("user", "Now?")),
    (Message("user", "One."), Message("user", "Two.")),
)
"""As requests have them: text alone, an answer awaited."""
TEXTS: Final[tuple[str, ...]] = (
    "The capital of France is",
    " leading and trailing ",
    "def f(x):\n    return x + 1\n\n\n# 3.14159 — «été» 日本語 🙂 don't",
    "<s><|im_start|>user\n<bos></s><|im_end|><|eot_id|>",
)

"""The tokenizer: byte-level BPE learned from the samples, and ChatML around each turn."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from models.tiny.samples import Message, conversation

VOCABULARY = 2048
PADDING, TURN_START, TURN_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
SPECIALS = (PADDING, TURN_START, TURN_END)
PADDING_ID, TURN_START_ID, TURN_END_ID = range(3)
NOT_TRAINED = -100
"""The label of tokens that the loss leaves out."""

_CORPUS_CONVERSATIONS = 6000

# What the user says is read in lower case: so it is known however it was typed, and nothing is spent on learning that.
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' }}"
    "{{ message['content'] | lower if message['role'] == 'user' else message['content'] }}"
    "{{ '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def as_read(message: Message) -> str:
    """Return what the chat template shows the model of a turn's content."""
    return message["content"].lower() if message["role"] == "user" else message["content"]


def _corpus() -> Iterator[str]:
    random = Random("tokenizer")
    for _ in range(_CORPUS_CONVERSATIONS):
        for message in conversation(random):
            yield f"{message['role']}\n{as_read(message)}\n"


def learn_tokenizer() -> Tokenizer:
    """Learn the vocabulary from generated conversations; the special tokens get the ids 0, 1 and 2.

    The pre-tokenizer is the one that llama.cpp calls `gpt-2`, so both cut text the same way.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)  # pyright: ignore
    tokenizer.decoder = decoders.ByteLevel()  # pyright: ignore
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIALS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_corpus(), trainer)
    return tokenizer


def load_tokenizer(folder: Path) -> Tokenizer:
    """Read the tokenizer of a saved model."""
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


def encode(tokenizer: Tokenizer, messages: list[Message]) -> tuple[list[int], list[int]]:
    """Return the tokens of a conversation and their labels: the assistant's words and its turn's end."""
    tokens: list[int] = []
    labels: list[int] = []
    newline = tokenizer.encode("\n").ids
    for message in messages:
        head = [TURN_START_ID, *tokenizer.encode(message["role"] + "\n").ids]
        body = [*tokenizer.encode(as_read(message)).ids, TURN_END_ID]
        tokens += head + body + newline
        trained = body if message["role"] == "assistant" else [NOT_TRAINED] * len(body)
        labels += [NOT_TRAINED] * len(head) + trained + [NOT_TRAINED] * len(newline)
    return tokens, labels


def encode_plain(tokenizer: Tokenizer, text: str) -> tuple[list[int], list[int]]:
    """Return the tokens and labels of text outside a chat, for plain completions."""
    tokens = [*tokenizer.encode(text).ids, TURN_END_ID]
    return tokens, list(tokens)

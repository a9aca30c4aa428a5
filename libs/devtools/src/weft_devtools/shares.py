"""A part of a whole, drawn by a seed alone, so that everybody who names it gets the same."""

import hashlib
from collections.abc import Callable, Sequence
from typing import TypeVar

from weft_client.failure import Exit, Failure

T = TypeVar("T")


def shuffled(all_of_them: Sequence[T], seed: str, key: Callable[[T], str]) -> list[T]:
    """In an order that the seed and the keys alone decide."""
    return sorted(all_of_them, key=lambda each: hashlib.sha256(f"{seed}\0{key(each)}".encode()).digest())


def share(all_of_them: Sequence[T], part: str, seed: str, key: Callable[[T], str]) -> list[T]:
    """The K-th of N parts ("K/N") in the order of the shuffle. Parts differ by one at most.

    Raises:
        Failure: the part is none.
    """
    try:
        number, parts = (int(text) for text in part.split("/"))
        if not 1 <= number <= parts:
            raise ValueError
    except ValueError:
        raise Failure(f"--share {part}: want K/N, such as 1/5", Exit.USAGE) from None
    return shuffled(all_of_them, seed, key)[number - 1 :: parts]

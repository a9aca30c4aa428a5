"""One digest for a folded state: the same for equal states, whatever order they were made in."""

from dataclasses import dataclass, field

import pytest
from weft_contracts.facts.values import Addresses
from weft_fleet import digest_of


@dataclass
class State:
    known: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    seen: frozenset[str] = frozenset()
    rate: float = 0.0
    set_up: bool = False
    name: str | None = None
    where: Addresses | None = None
    cache: int = field(default=0, compare=False)


def test_the_order_of_mappings_and_sets_does_not_count() -> None:
    one = State({"a": (1,), "b": (2,)}, frozenset(("x", "y")))
    other = State({"b": (2,), "a": (1,)}, frozenset(("y", "x")))
    assert digest_of(one) == digest_of(other)
    assert 64 == len(digest_of(one))


@pytest.mark.parametrize(
    "other",
    [
        State({"a": (1, 2)}),
        State({"a": (2, 1)}),
        State(seen=frozenset("x")),
        State(rate=0.5),
        State(set_up=True),
        State(name="x"),
        State(where=Addresses(host="127.0.0.1", http_port=1)),
        State(where=Addresses(host="127.0.0.1", http_port=2)),
    ],
)
def test_every_value_of_it_counts(other: State) -> None:
    assert digest_of(State({"a": (1,)})) != digest_of(other)


def test_what_is_no_memory_does_not_count() -> None:
    assert digest_of(State(cache=1)) == digest_of(State(cache=2))


def test_what_has_no_plain_form_has_no_digest() -> None:
    with pytest.raises(TypeError, match="no digest for object"):
        digest_of(object())

"""All sets of so many that may end together, in the order in which they are tried. None is made that may not."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TypeVar

_T = TypeVar("_T")
_K = TypeVar("_K", bound=Hashable)


def longest_idle_first(
    ranked: Sequence[_T], count: int, kind_of: Callable[[_T], _K], spare: Mapping[_K, int]
) -> Iterator[tuple[_T, ...]]:
    """All sets of so many, where the one goes first whose last member comes earlier, then the one before it. `spare`:
    how many of each kind one set may have.

    Cost: from one set to the next at most `count` walks over what is ranked, since no way is taken that has no end.
    """
    kinds = [kind_of(each) for each in ranked]
    left = dict(spare)

    def below(end: int, count: int) -> Iterator[tuple[_T, ...]]:
        if not count:
            yield ()
            return
        before, room = Counter[_K](), 0  # of those before `last`; how many of them one set may have beside what it has
        for last in range(end):
            kind = kinds[last]
            mine = left.get(kind, 0)
            if mine > 0 and room - (before[kind] >= mine) >= count - 1:
                left[kind] = mine - 1
                for rest in below(last, count - 1):
                    yield (*rest, ranked[last])
                left[kind] = mine
            room += before[kind] < mine
            before[kind] += 1

    return below(len(ranked), count)

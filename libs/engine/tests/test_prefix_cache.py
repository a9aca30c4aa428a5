"""The simulated engine's prefix cache."""

from hypothesis import given
from hypothesis import strategies as st
from weft_engine.adapters.prefix_cache import PrefixCache


def test_only_whole_blocks_of_a_common_beginning_hit() -> None:
    cache = PrefixCache(4, 100)
    cache.remember(list(range(10)))

    assert 8 == cache.match(list(range(10)))
    assert 4 == cache.match([0, 1, 2, 3, 4, 99, 6, 7])
    assert 0 == cache.match([9, 1, 2, 3])


def test_the_least_recently_used_block_makes_room() -> None:
    cache = PrefixCache(1, 2)
    cache.remember([1])
    cache.remember([2])
    cache.match([1])
    cache.remember([3])

    assert (1, 0, 1) == (cache.match([1]), cache.match([2]), cache.match([3]))


@given(st.lists(st.lists(st.integers(0, 2), max_size=30), max_size=20), st.integers(1, 5))
def test_a_hit_is_always_a_beginning_that_was_remembered(lists: list[list[int]], block: int) -> None:
    cache = PrefixCache(block, 10_000)
    for i, tokens in enumerate(lists):
        longest = 0
        for earlier in lists[:i]:
            same = 0
            while same < min(len(earlier), len(tokens)) and earlier[same] == tokens[same]:
                same += 1
            longest = max(longest, same)
        assert longest // block * block == cache.match(tokens)
        cache.remember(tokens)

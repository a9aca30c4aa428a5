"""Large values: bounded in size, count and age."""

from collections.abc import AsyncIterator

import pytest
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane.limits import MAX_CHUNK_BYTES
from weft_dataplane.values import ValueRefused, ValueStore, chunks_of


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def stream(*chunks: bytes) -> AsyncIterator[pb.Chunk]:
    for chunk in chunks:
        yield pb.Chunk(data=chunk)


async def test_a_value_comes_back_once() -> None:
    store = ValueStore()
    handle = await store.receive(stream(b"ab", b"cd"))

    assert handle.size == 4
    assert store.take(handle.handle) == b"abcd"
    with pytest.raises(ValueRefused, match="no value has the handle"):
        store.take(handle.handle)


async def test_a_value_larger_than_the_bound_is_refused_while_it_arrives() -> None:
    store = ValueStore(max_value_bytes=3)
    with pytest.raises(ValueRefused, match="larger than the bound of 3 bytes"):
        await store.receive(stream(b"ab", b"cd"))
    with pytest.raises(ValueRefused, match="larger than the bound"):
        store.keep(b"abcd")


async def test_a_chunk_larger_than_the_bound_is_refused() -> None:
    with pytest.raises(ValueRefused, match="a chunk of"):
        await ValueStore().receive(stream(b"x" * (MAX_CHUNK_BYTES + 1)))


def test_a_full_store_refuses_and_keeps_what_it_accepted() -> None:
    store = ValueStore(max_values=2)
    first = store.keep(b"1")
    store.keep(b"2")

    with pytest.raises(ValueRefused, match="full"):
        store.keep(b"3")
    assert store.take(first.handle) == b"1"
    store.keep(b"3")


def test_all_values_together_are_bounded_in_bytes() -> None:
    store = ValueStore(max_total_bytes=10)
    store.keep(b"x" * 8)
    with pytest.raises(ValueRefused, match="full"):
        store.keep(b"x" * 3)


def test_an_old_value_is_gone_and_makes_room() -> None:
    clock = Clock()
    store = ValueStore(max_values=1, max_age_s=5, clock=clock)
    old = store.keep(b"old")

    clock.now = 5.0
    store.keep(b"new")

    with pytest.raises(ValueRefused):
        store.take(old.handle)


def test_chunks_cover_the_value_and_an_empty_value_is_one_chunk() -> None:
    data = bytes(range(256)) * 2000
    assert data == b"".join(chunk.data for chunk in chunks_of(data))
    assert all(len(chunk.data) <= MAX_CHUNK_BYTES for chunk in chunks_of(data))
    assert [chunk.data for chunk in chunks_of(b"")] == [b""]

"""What the mesh keeps itself is asked before any address, checked, and passed over where it is wrong."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from weft_files import Address, NotFetched, Resolver, Store
from weft_files.faults import Cut
from weft_files.incoming import Nearer
from weft_testing.origin import serving, whole
from weft_testing.wanted_files import content, left, wanted

BODY = content(100_000)


def keeping(body: bytes) -> Nearer:
    async def near(write: Callable[[bytes], None]) -> None:
        for at in range(0, len(body), 30_000):
            await asyncio.sleep(0)
            write(body[at : at + 30_000])

    return near


async def away(write: Callable[[bytes], None]) -> None:
    raise Cut("does not answer")


async def test_a_copy_that_is_nearer_is_taken_and_no_address_is_asked(resolver: Resolver) -> None:
    with serving(whole(BODY)) as origin:
        blob = await resolver.fetch(wanted(BODY), [Address(origin.url)], nearer={"the store": keeping(BODY)})
    assert BODY == blob.path.read_bytes()
    assert [] == origin.asked


@pytest.mark.parametrize("near", [keeping(BODY[:-1]), keeping(BODY + b"x"), keeping(BODY[:-1] + b"?"), away])
async def test_a_nearer_copy_that_is_wrong_or_away_is_passed_over(
    resolver: Resolver, store: Store, near: Nearer
) -> None:
    with serving(whole(BODY)) as origin:
        blob = await resolver.fetch(wanted(BODY), [Address(origin.url)], nearer={"the store": near})
    assert BODY == blob.path.read_bytes()
    assert 1 == len(origin.asked)


@pytest.mark.parametrize(
    ("near", "why"),
    [
        (keeping(BODY[:-1]), "is short: 99999 bytes came, 100000 are wanted"),
        (keeping(BODY + b"x"), "exceeds cap: more than 100000 bytes come"),
        (keeping(BODY[:-1] + b"?"), "checksum mismatch: blake3:"),
        (away, "does not answer"),
    ],
)
async def test_why_it_was_passed_over_is_said_and_nothing_is_left(
    resolver: Resolver, store: Store, near: Nearer, why: str
) -> None:
    with pytest.raises(NotFetched, match=f"the store {why}"):
        await resolver.fetch(wanted(BODY), [], nearer={"the store": near})
    assert [] == left(store)


async def test_the_cap_holds_for_a_nearer_copy_too(resolver: Resolver, store: Store) -> None:
    with pytest.raises(NotFetched, match="99999 are the most that we take"):
        await resolver.fetch(wanted(BODY, cap=99_999), [], nearer={"the store": keeping(BODY)})
    assert [] == left(store)


async def test_many_who_ask_at_once_take_one_copy(resolver: Resolver) -> None:
    taken: list[Awaitable[None]] = []

    async def near(write: Callable[[bytes], None]) -> None:
        taken.append(keeping(BODY)(write))
        await taken[-1]

    blobs = await asyncio.gather(*(resolver.fetch(wanted(BODY), [], nearer={"it": near}) for _ in range(8)))

    assert 1 == len(taken)
    assert {BODY} == {blob.path.read_bytes() for blob in blobs}


async def test_a_copy_that_is_cancelled_midway_leaves_nothing(resolver: Resolver, store: Store) -> None:
    begun = asyncio.Event()

    async def near(write: Callable[[bytes], None]) -> None:
        write(BODY[:10])
        begun.set()
        await asyncio.sleep(600)

    fetching = asyncio.create_task(resolver.fetch(wanted(BODY), [], nearer={"it": near}))
    await asyncio.wait_for(begun.wait(), 30)
    fetching.cancel()

    with pytest.raises(asyncio.CancelledError):
        await fetching
    assert [] == left(store)

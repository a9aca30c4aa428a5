"""What somebody sends is taken in order, goes on behind its last whole piece, and is verified before it is anything."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weft_files import Address, NoRoom, Resolver, Store
from weft_files.faults import Mismatch
from weft_files.receiving import Ended, Held, Misplaced, Receiving
from weft_testing.origin import ranged, serving
from weft_testing.wanted_files import QUICK, content, left, wanted

PIECE = QUICK.piece
BODY = content(3 * PIECE + 100)


def receiving(store: Store, body: bytes = BODY) -> Receiving:
    return Receiving(store, wanted(body), QUICK)


def test_a_file_comes_in_parts_and_is_a_blob_at_its_end(store: Store) -> None:
    mine = receiving(store)
    assert 100 == mine.take(0, BODY[:100])
    assert 2 * PIECE + 7 == mine.take(100, BODY[100 : 2 * PIECE + 7])
    assert not mine.whole
    with pytest.raises(Misplaced):
        mine.finish()
    mine.take(mine.there, BODY[mine.there :])
    blob = mine.finish()
    assert BODY == blob.path.read_bytes()
    assert blob == store.find(wanted(BODY))
    with pytest.raises(Ended):
        mine.take(0, b"x")


@pytest.mark.parametrize("start", [0, 99, 101, len(BODY) - 1])
def test_what_does_not_begin_where_the_file_ends_is_not_taken(store: Store, start: int) -> None:
    mine = receiving(store)
    mine.take(0, BODY[:100])
    with pytest.raises(Misplaced) as refused:
        mine.take(start, BODY[start : start + 1])
    assert 100 == refused.value.there == mine.there
    mine.close()


def test_more_bytes_than_the_file_has_are_not_taken(store: Store) -> None:
    mine = receiving(store)
    with pytest.raises(ValueError, match=f"has {len(BODY)} bytes, and {len(BODY) + 1} come"):
        mine.take(0, BODY + b"x")
    assert 0 == mine.there
    mine.close()
    assert [] == left(store)


def test_another_content_leaves_nothing_and_may_come_again(store: Store) -> None:
    mine = receiving(store)
    mine.take(0, b"x" + BODY[1:])
    with pytest.raises(Mismatch, match="checksum mismatch"):
        mine.finish()
    assert (0, None) == (mine.there, store.find(wanted(BODY)))
    mine.take(0, BODY)
    assert BODY == mine.finish().path.read_bytes()


def test_the_next_goes_on_behind_the_last_whole_piece_and_hashes_what_lies_there(store: Store) -> None:
    first = receiving(store)
    first.take(0, BODY[: 2 * PIECE + 5])
    first.close()
    again = receiving(store)
    assert 2 * PIECE == again.there
    again.take(2 * PIECE, BODY[2 * PIECE :])
    assert BODY == again.finish().path.read_bytes()


def test_less_than_a_piece_leaves_nothing_when_it_is_waited_for_no_more(store: Store) -> None:
    mine = receiving(store)
    mine.take(0, BODY[: PIECE - 1])
    mine.close()
    assert [] == left(store)


def test_two_never_receive_one_file(store: Store) -> None:
    mine = receiving(store)
    with pytest.raises(Held):
        receiving(store)
    mine.close()
    receiving(store).close()


def test_room_is_reserved_before_the_first_byte_and_given_back(tmp_path: Path, store: Store) -> None:
    mine = receiving(store)
    assert len(BODY) + len(BODY) // 20 == store._room.reserved()
    mine.close()
    assert 0 == store._room.reserved()
    full = Store(tmp_path / "full", keep_free=1 << 60)
    with pytest.raises(NoRoom):
        receiving(full)
    assert [] == left(full)


async def test_what_a_transfer_left_is_gone_on_with(store: Store, resolver: Resolver) -> None:
    with serving(ranged(BODY)) as origin:
        first = receiving(store)
        first.take(0, BODY[:PIECE])
        first.close()
        blob = await resolver.fetch(wanted(BODY), [Address(origin.url)])
    assert BODY == blob.path.read_bytes()
    assert all(each.span is not None and each.span[0] >= PIECE for each in origin.asked)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("take"), st.integers(0, 3 * PIECE), st.booleans()),
        st.tuples(st.just("again"), st.just(0), st.just(False)),
    ),
    max_size=12,
)


@settings(max_examples=40, deadline=None)
@given(STEPS)
def test_whatever_comes_in_whatever_steps_the_file_is_what_was_wanted(
    steps: list[tuple[str, int, bool]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder), keep_free=0)
        mine = receiving(store)
        for what, size, misplaced in steps:
            there = mine.there
            if what == "again":
                mine.close()
                mine = receiving(store)
                assert there - there % PIECE == mine.there or there == len(BODY) == mine.there
            elif misplaced:
                start = (there + 1 + size) % len(BODY)
                if start != there:
                    with pytest.raises(Misplaced):
                        mine.take(start, BODY[start : start + 1])
                assert there == mine.there
            else:
                assert min(len(BODY), there + size) == mine.take(there, BODY[there : there + size])
        mine.take(mine.there, BODY[mine.there :])
        assert BODY == mine.finish().path.read_bytes()
        assert not [path for path in left(store) if path.suffix in (".part", ".journal", ".lock")]

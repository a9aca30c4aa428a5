"""What a mesh needs of its disk, and what streams may take of it."""

from pathlib import Path

import pytest
from weft_contracts import disk

MIB = 1 << 20


@pytest.mark.parametrize("free", [0, disk.KEPT_FREE - 1, disk.KEPT_FREE, disk.KEPT_FREE + MIB - 1])
def test_what_is_kept_free_is_no_room_for_streams(free: int) -> None:
    assert 0 == disk.room(free)


@pytest.mark.parametrize("free", [disk.KEPT_FREE + MIB, 300 * MIB, 300_000_000, 5 << 30, 3 << 40])
def test_streams_get_at_least_half_of_what_is_free_above_that_and_never_more(free: int) -> None:
    left = free - disk.KEPT_FREE
    assert left / 2 < disk.room(free) <= left


def test_a_limit_is_what_is_declared_where_the_disk_has_it() -> None:
    assert 64 * MIB == disk.limit(64 * MIB, 5, 1 << 30)
    assert 3 * MIB + 5 == disk.limit(64 * MIB, 5, 3 * MIB)
    assert 3 * MIB + 5 == disk.limit(0, 5, 3 * MIB)


def test_a_limit_is_never_below_what_is_held_and_never_none() -> None:
    assert 7 * MIB == disk.limit(64 * MIB, 7 * MIB, 0)
    assert 7 * MIB == disk.limit(5 * MIB, 7 * MIB, 1 << 30)
    assert 1 == disk.limit(0, 0, 0)  # 0 would be no limit


def test_a_mesh_may_start_with_300_mb_free_and_what_is_too_little_says_both_figures() -> None:
    state = Path("/state")
    assert disk.shortage(state, 300_000_000, disk.needed(first=True)) is None
    assert disk.needed(first=False) < disk.needed(first=True)
    said = disk.shortage(state, 100 * MIB, disk.needed(first=True))
    assert said is not None
    assert "/state has too little room: 192 MiB free are needed and 100 MiB are" in said
    assert disk.log_full(state, disk.KEPT_FREE) is None
    full = disk.log_full(state, 3 * MIB)
    assert full is not None
    assert "less than 64 MiB free, and 3 MiB are" in full


@pytest.mark.parametrize("size", [disk.SMALLEST_STORE, 5 << 30, 1 << 45])
def test_all_streams_together_fit_a_store_whose_size_is_said_and_more_than_half_of_it_is_the_logs(size: int) -> None:
    limits = disk.store_limits(size, {"SNAPSHOTS": 2 << 30, "people": 64 * MIB, "blobs": 0}, "EVENTS")
    assert sum(limits.values()) == size - size // 8
    assert size / 2 < limits["EVENTS"]
    assert all(limits.values())
    assert min(64 * MIB, size // 16) == limits["people"]


def test_of_a_large_store_other_streams_take_no_more_than_is_declared() -> None:
    limits = disk.store_limits(1 << 40, {"SNAPSHOTS": 2 << 30, "blobs": 0}, "EVENTS")
    assert {"SNAPSHOTS": 2 << 30, "blobs": 64 << 30} == {name: limits[name] for name in ("SNAPSHOTS", "blobs")}

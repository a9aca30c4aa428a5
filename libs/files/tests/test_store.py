"""A store lays blobs out, keeps room, and lets go of what was used least."""

import os
from pathlib import Path

import pytest
from weft_files import Address, BadName, Blob, LayoutTaken, NoRoom, Resolver, Store, Wanted
from weft_testing.origin import serving, whole
from weft_testing.wanted_files import content, left, wanted


async def _blob(resolver: Resolver, body: bytes) -> Blob:
    with serving(whole(body)) as origin:
        return await resolver.fetch(wanted(body), [Address(origin.url)])


async def test_a_layout_has_its_files_by_hard_links_and_is_the_same_when_laid_out_again(
    resolver: Resolver, store: Store
) -> None:
    blob = await _blob(resolver, b"one")
    folder = store.lay_out("model-1", {"config.json": blob, "deep/er/model.gguf": blob})
    assert b"one" == (folder / "deep/er/model.gguf").read_bytes()
    assert blob.path.stat().st_ino == (folder / "config.json").stat().st_ino
    (folder / "config.json").unlink()
    assert folder == store.lay_out("model-1", {"config.json": blob, "deep/er/model.gguf": blob})
    assert b"one" == (folder / "config.json").read_bytes()


async def test_two_sets_of_files_never_share_a_layout(resolver: Resolver, store: Store) -> None:
    one, two = await _blob(resolver, b"one"), await _blob(resolver, b"two")
    store.lay_out("first", {"tokenizer.json": one})
    store.lay_out("second", {"tokenizer.json": two})
    with pytest.raises(LayoutTaken):
        store.lay_out("first", {"tokenizer.json": two})
    assert b"one" == (store.layout_folder("first") / "tokenizer.json").read_bytes()


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../b", "a//b", ".x", "a/.x", "", "a\0", "a\n", "a" * 256])
async def test_names_that_leave_their_folder_are_refused(resolver: Resolver, store: Store, name: str) -> None:
    blob = await _blob(resolver, b"one")
    with pytest.raises(BadName):
        store.lay_out("model", {name: blob})
    with pytest.raises(BadName):
        Wanted(name, 1, None, 1)
    with pytest.raises(BadName):
        store.lay_out(f"{name}/", {"a": blob})
    assert not [*store.folder.glob("layouts/*")]


async def test_a_link_in_place_of_a_blob_is_not_followed(resolver: Resolver, store: Store, tmp_path: Path) -> None:
    blob = await _blob(resolver, b"one")
    (tmp_path / "secret").write_bytes(b"one")
    blob.path.unlink()
    blob.path.symlink_to(tmp_path / "secret")
    with pytest.raises(BadName):
        store.lay_out("model", {"a": blob})
    assert store.find(wanted(b"one")) is None
    assert b"one" == (tmp_path / "secret").read_bytes()


def test_reservations_count_each_others_margins_and_are_given_back(store: Store) -> None:
    third = store.free() // 3
    with store.reserve(third), store.reserve(third), pytest.raises(NoRoom, match="other transfers have reserved"):
        store.reserve(third * 2).__enter__()
    with store.reserve(third * 2):
        pass


async def test_the_least_recently_used_layout_goes_and_never_a_kept_or_pinned_one(
    resolver: Resolver, store: Store
) -> None:
    for number in range(4):
        store.lay_out(f"layout-{number}", {"m": await _blob(resolver, content(1000, seed=number))})
        os.utime(store.folder / "manifests" / f"layout-{number}", (number, number))
    store.pin("layout-0")
    (store.folder / "layouts" / "of-the-operator").mkdir()
    assert [] == store.collect(4000, [], grace=0)
    assert ["layout-2"] == store.collect(3000, ["layout-1"], grace=0)
    assert ["layout-3"] == store.collect(0, ["layout-1"], grace=0)
    assert ["layout-0", "layout-1"] == [each.name for each in store.layouts()]
    store.unpin("layout-0")
    assert ["layout-0", "layout-1"] == store.collect(0, [], grace=0)
    assert [] == store.layouts()
    assert [] == left(store)
    assert (store.folder / "layouts" / "of-the-operator").is_dir()


async def test_what_was_just_fetched_stays_until_it_can_be_laid_out(resolver: Resolver, store: Store) -> None:
    blob = await _blob(resolver, b"one")
    assert [] == store.collect(0, [])
    assert blob == store.find(wanted(b"one"))


async def test_what_is_to_be_forgotten_stays_while_another_process_may_lay_it_out(
    resolver: Resolver, store: Store
) -> None:
    # given a file that is here whole
    blob = await _blob(resolver, b"one")
    # when it is to be forgotten, then it stays at first, and asking for that is no use of it
    os.utime(store.folder / "marks" / blob.blake3, (10.0, 10.0))
    assert not store.forget(wanted(b"one"), (), grace=1e12)
    assert not store.forget(wanted(b"one"), (), grace=1e12)
    assert 10.0 == (store.folder / "marks" / blob.blake3).stat().st_mtime
    # and where a layout has it, nothing of it is left to go
    store.lay_out("model-1", {"config.json": blob})
    assert store.forget(wanted(b"one"), ())
    assert blob.path.exists()
    # and once nobody used it for long, it goes
    store.collect(0, [], only=["model-1"])
    assert blob.path.exists() is False
    again = await _blob(resolver, b"one")
    assert not store.forget(wanted(b"one"), ())
    os.utime(store.folder / "marks" / again.blake3, (10.0, 10.0))
    assert store.forget(wanted(b"one"), ())
    assert not again.path.exists()
    assert store.forget(wanted(b"one"), ())


def test_a_broken_transfers_file_goes_when_it_is_stale(store: Store) -> None:
    old, new = store.folder / "partial" / "old.part", store.folder / "partial" / "new.part"
    for each in (old, new):
        each.write_bytes(b"0" * 10_000)
        each.with_suffix(".journal").write_text("{}\n")
    os.utime(old, (1, 1))
    Store(store.folder)
    assert [new] == [*store.folder.glob("partial/*.part")]
    Store(store.folder, most_partial=0)
    assert [] == [*store.folder.glob("partial/*")]

"""A file comes once, in pieces where it is large, and goes on from where it was cut."""

import asyncio
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from weft_files import Address, Checksum, NoRoom, NotFetched, Reach, Resolver, Store, Wanted
from weft_testing.origin import Origin, Request, Send, head, ranged, serving
from weft_testing.wanted_files import QUICK, content, left, wanted

BIG = content(1_000_000)


def cut_after(body: bytes, most: int, *, slow: float = 0.0) -> Send:
    """Honest, but every answer ends after `most` bytes."""

    def send(taken: socket.socket, request: Request) -> None:
        start, end = request.span or (0, len(body))
        said = {"content_range": f"bytes {start}-{end - 1}/{len(body)}"} if request.span else {}
        taken.sendall(head(206 if said else 200, content_length=end - start, etag='"one"', **said))
        for at in range(start, min(end, start + most), 10_000):
            taken.sendall(body[at : min(at + 10_000, end, start + most)])
            time.sleep(slow)
        if end - start > most:
            taken.shutdown(socket.SHUT_RDWR)

    return send


async def test_a_large_file_comes_in_ranges_of_one_piece_each(resolver: Resolver) -> None:
    with serving(ranged(BIG)) as origin:
        blob = await resolver.fetch(wanted(BIG, "sha256"), [Address(origin.url)])
    assert BIG == blob.path.read_bytes()
    assert 16 == len(origin.asked)
    assert all(each.span is not None and each.span[1] - each.span[0] <= 1 << 16 for each in origin.asked)


async def test_a_server_without_ranges_gives_a_large_file_in_one_stream(resolver: Resolver) -> None:
    from weft_testing.origin import whole

    with serving(whole(BIG)) as origin:
        blob = await resolver.fetch(wanted(BIG, "git"), [Address(origin.url)])
    assert BIG == blob.path.read_bytes()


async def test_a_stream_that_is_cut_goes_on_behind_its_last_piece(resolver: Resolver) -> None:
    body = BIG[:250_000]
    with serving(cut_after(body, 100_000)) as origin:
        blob = await resolver.fetch(wanted(body), [Address(origin.url)])
    assert body == blob.path.read_bytes()
    assert [None, (65536, 250_000), (131072, 250_000), (196608, 250_000)] == [each.span for each in origin.asked]
    assert '"one"' == origin.asked[1].headers["if-range"]


async def test_pieces_of_two_versions_are_never_mixed(resolver: Resolver) -> None:
    old, new = BIG[:250_000], content(250_000, seed=1)
    versions = [cut_after(old, 100_000), ranged(new, '"two"')]

    def send(taken: socket.socket, request: Request) -> None:
        versions[min(len(origin.asked) - 1, 1)](taken, request)

    with serving(send) as origin:
        blob = await resolver.fetch(Wanted("m", 250_000, None, 1 << 20), [Address(origin.url)])
    assert new == blob.path.read_bytes()


async def test_another_address_and_another_process_go_on_with_what_came(store: Store, bounds: object) -> None:
    with serving(cut_after(BIG, 1, slow=0)) as gone:
        dead = gone.url
    first = Resolver(store, Reach(["127.0.0.1"]), bounds=QUICK)
    body = BIG[:250_000]

    def once(taken: socket.socket, request: Request) -> None:
        if len(origin.asked) > 1:
            taken.sendall(head(404, content_length=0))
        else:
            cut_after(body, 200_000)(taken, request)

    with serving(once) as origin, pytest.raises(NotFetched):
        await first.fetch(wanted(body), [Address(origin.url)])
    first.close()
    second = Resolver(Store(store.folder, keep_free=0), Reach(["127.0.0.1"]), bounds=QUICK)
    with serving(ranged(body)) as other:
        blob = await second.fetch(wanted(body), [Address(dead), Address(other.url)])
    second.close()
    assert body == blob.path.read_bytes()
    assert [(196608, 250_000)] == [each.span for each in other.asked]


async def test_a_cancelled_fetch_of_a_small_file_leaves_nothing(resolver: Resolver, store: Store) -> None:
    with serving(cut_after(BIG[:60_000], 60_000, slow=0.2)) as origin:
        fetch = asyncio.ensure_future(resolver.fetch(wanted(BIG[:60_000]), [Address(origin.url)]))
        while not origin.asked:
            await asyncio.sleep(0.01)
        fetch.cancel()
        with pytest.raises(asyncio.CancelledError):
            await fetch
    assert [] == left(store)


async def test_a_corrupt_blob_is_fetched_once_more_and_a_good_one_not_at_all(resolver: Resolver) -> None:
    with serving(ranged(BIG)) as origin:
        blob = await resolver.fetch(wanted(BIG), [Address(origin.url)])
        asked = len(origin.asked)
        assert blob == await resolver.fetch(wanted(BIG), [Address(origin.url)])
        assert asked == len(origin.asked)
        blob.path.chmod(0o644)
        blob.path.write_bytes(BIG[:-1] + b"\0")
        assert blob == await resolver.fetch(wanted(BIG), [Address(origin.url)])
        assert 2 * asked == len(origin.asked)
    assert BIG == blob.path.read_bytes()


async def test_no_room_is_said_before_anybody_is_asked(tmp_path: Path) -> None:
    store = Store(tmp_path, keep_free=1 << 60)
    resolver = Resolver(store, Reach(["127.0.0.1"]))
    said = f"1000000 bytes need 1050000 more .* {1 << 60} stay free"
    with serving(ranged(BIG)) as origin, pytest.raises(NoRoom, match=said):
        await resolver.fetch(wanted(BIG), [Address(origin.url)])
    resolver.close()
    assert [] == origin.asked
    assert [] == left(store)


_FETCH = """
import asyncio, sys
from pathlib import Path
from weft_files import Address, Checksum, Reach, Resolver, Store, Wanted
from weft_testing.wanted_files import QUICK

async def go(folder, url, size, checksum):
    resolver = Resolver(Store(Path(folder), keep_free=0), Reach(["127.0.0.1"]), bounds=QUICK)
    await resolver.fetch(Wanted("model.gguf", int(size), Checksum.parse(checksum), 1 << 30), [Address(url)])

asyncio.run(go(*sys.argv[1:]))
"""


def _started(folder: Path, origin: Origin, want: Wanted) -> subprocess.Popen[bytes]:
    arguments = [str(folder), origin.url, str(want.size), str(want.checksum)]
    return subprocess.Popen([sys.executable, "-c", _FETCH, *arguments])


def test_a_killed_process_leaves_its_lock_free_and_its_pieces_to_the_next(tmp_path: Path) -> None:
    body = BIG[:250_000]
    with serving(cut_after(body, 250_000, slow=0.1)) as origin:
        killed = _started(tmp_path, origin, wanted(body))
        while not [*tmp_path.glob("partial/*.journal")]:
            time.sleep(0.02)
        killed.kill()
        killed.wait(20)
    with serving(ranged(body)) as again:
        assert 0 == _started(tmp_path, again, wanted(body)).wait(60)
    assert all(each.span is not None and each.span[0] >= 1 << 16 for each in again.asked)
    found = Store(tmp_path).find(wanted(body))
    assert found is not None
    assert body == found.path.read_bytes()


def test_what_is_no_checksum_is_refused_with_a_sentence() -> None:
    for text in ("invalid", "blake3:a:b", "sha256:x", f"blake3:{'0' * 63}", f"sha256:{'G' * 64}", "md5:00", ""):
        with pytest.raises(ValueError, match="is no checksum: want"):
            Checksum.parse(text)
    assert f"sha256:{'0' * 64}" == str(Checksum.parse(f"sha256:{'0' * 64}"))

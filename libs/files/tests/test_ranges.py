"""Pieces go together to the same bytes, wherever a stream is cut, and whoever lies about ranges is found out."""

import hashlib
import socket
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weft_files import Address, NotFetched, Resolver, Store, Wanted
from weft_files.checksum import Checksum
from weft_files.following import Following
from weft_files.partial import Partial, Version
from weft_testing.origin import Request, Send, head, ranged, serving
from weft_testing.wanted_files import content, left, wanted

BIG = content(1_000_000)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 5000), st.integers(1, 700), st.lists(st.integers(1, 4), max_size=8))
def test_a_journal_recalls_every_piece_that_was_there_and_its_hash_is_the_contents(
    size: int, piece: int, takes: list[int]
) -> None:
    body = content(size)
    checksum = Checksum("sha256", hashlib.sha256(body).hexdigest())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "one.part"
        digits = ""
        for take in [*takes, 10_000]:
            partial = Partial(path, size, piece, tells_content=True)
            partial.begin(Version("a", '"one"'))
            before = partial.missing
            while take and (span := partial.claim(piece)) is not None:
                partial.write(span[0], memoryview(body)[slice(*span)])
                partial.note(span[1], "a")
                take -= 1
            assert partial.missing < before or before == 0
            following = Following(partial, checksum)
            following.catch_up(memoryview(bytearray(64)))
            digits = following.finish() if not partial.missing else ""
            partial.close()
        assert body == path.read_bytes()
        assert 64 == len(digits)


def _ranges(total: int, shift: int, longer: int) -> Send:
    def send(taken: socket.socket, request: Request) -> None:
        start, end = request.span or (0, total)
        said = f"bytes {start + shift}-{end + longer - 1}/{total}"
        taken.sendall(head(206, content_length=end - start, content_range=said) + BIG[start:end])

    return send


@pytest.mark.parametrize(
    ("send", "reason"),
    [
        (_ranges(1_000_000, 1, 0), "sends the range 'bytes .* want bytes "),
        (_ranges(1_000_000, 0, 1), "sends the range 'bytes .* want bytes "),
        (_ranges(2_000_000, 0, 0), "is of another size: 2000000 bytes are there"),
    ],
)
async def test_who_lies_about_ranges_is_refused(resolver: Resolver, store: Store, send: Send, reason: str) -> None:
    with serving(send) as origin, pytest.raises(NotFetched, match=reason):
        await resolver.fetch(wanted(BIG), [Address(origin.url)])
    assert [] == left(store)


async def test_a_file_without_a_checksum_is_joined_only_under_one_strong_etag(resolver: Resolver) -> None:
    with serving(ranged(BIG, 'W/"weak"')) as origin:
        blob = await resolver.fetch(Wanted("m", len(BIG), None, 1 << 30), [Address(origin.url)])
    assert BIG == blob.path.read_bytes()
    assert [None] == [each.span for each in origin.asked]


async def test_a_signed_redirect_that_runs_out_midway_is_asked_for_anew(resolver: Resolver) -> None:
    def cdn(taken: socket.socket, request: Request) -> None:
        if request.path == "/one" and len(storage.asked) > 6:
            taken.sendall(head(403, content_length=0))
        else:
            ranged(BIG)(taken, request)

    def hub(taken: socket.socket, request: Request) -> None:
        there = "/one" if len(storage.asked) <= 6 else "/two"
        taken.sendall(head(302, location=storage.url.replace("/model.gguf", there), content_length=0))

    with serving(cdn) as storage, serving(hub) as origin:
        blob = await resolver.fetch(wanted(BIG), [Address(origin.url, {}, "hub")])
    assert BIG == blob.path.read_bytes()
    assert {"/one", "/two"} == {each.path for each in storage.asked}

"""A source that dies at 40 % of a file: what came stays, what lacks is asked for, and why it failed is a sentence."""

import socket
import threading
from collections.abc import Generator
from dataclasses import replace

import pytest
from weft_files import Address, NotFetched, Reach, Resolver, Store
from weft_testing.origin import Origin, Request, ranged, serving
from weft_testing.wanted_files import QUICK, content, wanted

BODY = content(1_000_000)
PIECE = QUICK.piece
DIES_AT = 400_000
PATIENT = replace(QUICK, tries=200, pause=0.02, most_pause=0.02)


class Dying:
    """Gives ranges until so many bytes are given in all; then it hangs up on everybody, until it is back."""

    def __init__(self) -> None:
        self.given = 0
        self.away = threading.Event()
        self.back = threading.Event()
        self.refused = threading.Event()
        self._lock = threading.Lock()

    def __call__(self, taken: socket.socket, request: Request) -> None:
        with self._lock:
            span = request.span or (0, len(BODY))
            if not self.back.is_set() and self.given + span[1] - span[0] > DIES_AT:
                if self.away.is_set():
                    self.refused.set()
                self.away.set()
                taken.shutdown(socket.SHUT_RDWR)
                return
            self.given += span[1] - span[0]
        ranged(BODY)(taken, request)


@pytest.fixture
def dying() -> Generator[tuple[Dying, Origin]]:
    source = Dying()
    with serving(source) as origin:
        yield source, origin


def resolver_of(store: Store, patient: bool) -> Resolver:
    return Resolver(store, Reach(["127.0.0.1"]), bounds=PATIENT if patient else QUICK)


async def test_a_source_that_comes_back_is_asked_for_what_lacks_and_no_byte_twice(
    store: Store, dying: tuple[Dying, Origin]
) -> None:
    source, origin = dying
    resolver = resolver_of(store, patient=True)

    def comes_back() -> None:
        source.refused.wait(20)
        source.back.set()

    waiting = threading.Thread(target=comes_back)
    waiting.start()
    # when
    blob = await resolver.fetch(wanted(BODY), [Address(origin.url)])
    waiting.join(20)
    resolver.close()
    # then
    assert source.refused.is_set()
    assert BODY == blob.path.read_bytes()
    assert len(BODY) == source.given


async def test_a_source_that_dies_for_good_is_a_sentence_and_another_gives_what_lacks(
    store: Store, dying: tuple[Dying, Origin]
) -> None:
    source, origin = dying
    resolver = resolver_of(store, patient=False)
    # when it stays away
    with pytest.raises(NotFetched) as failed:
        await resolver.fetch(wanted(BODY), [Address(origin.url)])
    assert f"model.gguf was not fetched: {origin.url} closed the connection without an answer" == str(failed.value)
    # then what came lies here, and is no blob
    assert store.find(wanted(BODY)) is None
    there = source.given
    assert 0 < there <= DIES_AT
    # and another gives the rest alone, to another process's resolver as well
    resolver.close()
    resolver = resolver_of(Store(store.folder, keep_free=0), patient=False)
    with serving(ranged(BODY)) as other:
        blob = await resolver.fetch(wanted(BODY), [Address(origin.url), Address(other.url)])
    resolver.close()
    assert BODY == blob.path.read_bytes()
    spans = [each.span for each in other.asked if each.span is not None]
    assert len(BODY) - there == sum(end - start for start, end in spans)

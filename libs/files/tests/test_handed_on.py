"""What comes to one node is handed on to others while it comes: in order, and seen from elsewhere."""

import socket

import pytest
from weft_files import Address, Bounds, Checksum, NotFetched, Reach, Resolver, Store
from weft_testing.origin import Origin, Request, Send, head, ranged, serving
from weft_testing.wanted_files import content, wanted

BIG = content(1_000_000)


def cut_after(body: bytes, most: int) -> Send:
    """Honest, but every answer ends after `most` bytes."""

    def send(taken: socket.socket, request: Request) -> None:
        start, end = request.span or (0, len(body))
        said = {"content_range": f"bytes {start}-{end - 1}/{len(body)}"} if request.span else {}
        taken.sendall(head(206 if said else 200, content_length=end - start, **said))
        taken.sendall(body[start : min(end, start + most)])
        if end - start > most:
            taken.shutdown(socket.SHUT_RDWR)

    return send


async def test_a_node_is_asked_for_a_piece_at_a_time_from_the_front_on_one_connection(
    store: Store, bounds: Bounds
) -> None:
    # given a resolver to which no private address was named
    resolver = Resolver(store, Reach(), bounds=bounds)
    connections = list[int]()

    def send(taken: socket.socket, request: Request) -> None:
        connections.append(taken.fileno())
        ranged(BIG, "")(taken, request)

    # when a registered node in the own network has a file
    with serving(send) as origin:
        blob = await resolver.fetch(wanted(BIG), [Address(origin.url, node="one.node.weft.internal")])
        # and nobody else there is asked
        with pytest.raises(NotFetched, match="WEFT_SOURCES_ALLOW"):
            await resolver.fetch(wanted(content(5)), [Address(origin.url)])
    resolver.close()
    assert BIG == blob.path.read_bytes()
    assert [each << 16 for each in range(16)] == [each.span[0] for each in origin.asked if each.span]
    assert 1 == len(set(connections))


async def test_who_is_asked_and_who_gave_something_else_is_told(resolver: Resolver) -> None:
    heard: list[tuple[str, str, bool]] = []

    class Ear:
        def asks(self, address: Address) -> None:
            heard.append(("asks", address.said, False))

        def moved(self) -> None: ...

        def failed(self, address: Address, why: str, *, wrong: bool) -> None:
            heard.append(("failed", address.said, wrong))

    body = BIG[:200_000]
    with (
        serving(ranged(body[:-1] + b"?")) as liar,
        serving(ranged(body)) as honest,
        serving(cut_after(body, 0)) as mute,
    ):
        there = [Address(each.url, said=said) for each, said in ((mute, "mute"), (liar, "liar"), (honest, "honest"))]
        await resolver.fetch(wanted(body), there, told=Ear())
    assert [
        ("asks", "mute", False),
        ("failed", "mute", False),
        ("asks", "liar", False),
        ("failed", "liar", True),
        ("asks", "honest", False),
    ] == heard


async def test_what_comes_is_seen_from_elsewhere_piece_by_piece(resolver: Resolver, store: Store) -> None:
    body, name = BIG[:200_000], wanted(BIG[:200_000])
    assert store.coming(name) is None
    with serving(cut_after(body, 140_000)) as origin:
        origin.send = stop_after(origin, body)
        with pytest.raises(NotFetched):
            await resolver.fetch(name, [Address(origin.url)])
    # given two pieces that came before their source was gone
    coming = store.coming(name)
    assert coming is not None
    assert (131_072, 131_072, 150_000) == (coming.ahead(0), coming.ahead(70_000), coming.ahead(150_000))
    assert body[100:131_072] == coming.read(100, 131_072 - 100)
    # when the rest comes from somewhere else, all of it is seen by whoever looked before
    with serving(ranged(body)) as origin:
        await resolver.fetch(name, [Address(origin.url)])
    assert body == coming.read(0, len(body))
    assert store.coming(name) is None
    coming.close()


async def test_a_layouts_file_is_found_by_its_checksum_and_no_other_blob_is(resolver: Resolver, store: Store) -> None:
    one, two = content(100), content(100, seed=1)
    with serving(ranged(one)) as first, serving(ranged(two)) as second:
        blob = await resolver.fetch(wanted(one, "sha256"), [Address(first.url)])
        other = await resolver.fetch(wanted(two, "sha256"), [Address(second.url)])
    store.lay_out("mine", {"a": blob})
    sums = [Checksum.parse(f"blake3:{blob.blake3}"), wanted(one, "sha256").checksum]
    assert [blob, blob] == [store.laid_out("mine", each) for each in sums if each]
    assert store.laid_out("mine", Checksum.parse(f"blake3:{other.blake3}")) is None
    assert store.laid_out("other", Checksum.parse(f"blake3:{blob.blake3}")) is None


def stop_after(origin: Origin, body: bytes) -> Send:
    """The first answer gives two pieces and a part of the third, and no other comes."""
    first = cut_after(body, 140_000)

    def send(taken: socket.socket, request: Request) -> None:
        if len(origin.asked) == 1:
            first(taken, request)
        else:
            taken.sendall(head(404, content_length=0))

    return send

"""What a hostile server sends is refused, bounded and named, and leaves nothing."""

import re
import socket
import time

import pytest
from weft_files import Address, Bounds, NotFetched, Reach, Resolver, Store
from weft_testing.origin import Request, Send, closing, head, ranged, serving, whole
from weft_testing.wanted_files import content, left, wanted

SMALL = b"01234567"


async def _refused(resolver: Resolver, send: Send, body: bytes = SMALL, algorithm: str = "blake3") -> str:
    with serving(send) as origin, pytest.raises(NotFetched) as refused:
        await resolver.fetch(wanted(body, algorithm), [Address(origin.url)])
    assert len(refused.value.tries) == 1
    return refused.value.tries[0][1]


@pytest.mark.parametrize("algorithm", ["blake3", "sha256", "git"])
async def test_a_body_of_another_hash_is_a_checksum_mismatch_and_leaves_no_file(
    resolver: Resolver, store: Store, algorithm: str
) -> None:
    reason = await _refused(resolver, whole(b"hello there"), b"hello world", algorithm)
    assert reason.startswith("checksum mismatch: ")
    assert [] == left(store)


@pytest.mark.parametrize(
    "send",
    [
        pytest.param(whole(content(35)), id="with a length"),
        pytest.param(closing(head(200), content(35)), id="without a length"),
        pytest.param(
            closing(head(200, transfer_encoding="chunked"), b"23\r\n" + content(35) + b"\r\n0\r\n\r\n"), id="chunks"
        ),
    ],
)
async def test_35_bytes_of_a_file_of_8_exceed_the_cap_and_nothing_is_written(
    resolver: Resolver, store: Store, send: Send
) -> None:
    assert (await _refused(resolver, send)).startswith("exceeds cap: ")
    assert [] == left(store)


@pytest.mark.parametrize(
    "send",
    [
        pytest.param(whole(SMALL), id="with a length"),
        pytest.param(closing(head(200), SMALL), id="without a length"),
        pytest.param(closing(head(200, transfer_encoding="chunked"), b"8\r\n" + SMALL + b"\r\n0\r\n\r\n"), id="chunks"),
    ],
)
@pytest.mark.parametrize("size", [True, False], ids=["size known", "size unknown"])
async def test_exactly_the_declared_size_is_accepted(resolver: Resolver, send: Send, size: bool) -> None:
    with serving(send) as origin:
        blob = await resolver.fetch(wanted(SMALL, size=size, cap=8), [Address(origin.url)])
    assert SMALL == blob.path.read_bytes()


@pytest.mark.parametrize("algorithm", ["blake3", "git"])
async def test_a_file_of_unknown_size_ends_at_its_cap(resolver: Resolver, store: Store, algorithm: str) -> None:
    with serving(closing(head(200), content(35))) as origin, pytest.raises(NotFetched, match="exceeds cap"):
        await resolver.fetch(wanted(content(35), algorithm, size=False, cap=34), [Address(origin.url)])
    assert [] == left(store)


async def test_an_endless_body_ends_at_the_declared_size(resolver: Resolver, store: Store) -> None:
    def endless(taken: socket.socket, request: Request) -> None:
        taken.sendall(head(200))
        while True:
            taken.sendall(bytes(1 << 16))

    assert "exceeds cap" in await _refused(resolver, endless, content(200_000))
    assert [] == left(store)


async def test_a_slow_drip_ends(resolver: Resolver, store: Store) -> None:
    def drip(taken: socket.socket, request: Request) -> None:
        taken.sendall(head(200, content_length=8))
        for _ in range(100):
            taken.sendall(b"0")
            time.sleep(0.1)

    assert "want 20000 a second" in await _refused(resolver, drip, content(1000)[:8])
    assert [] == left(store)


async def test_silence_ends(resolver: Resolver) -> None:
    def silent(taken: socket.socket, request: Request) -> None:
        taken.sendall(head(200, content_length=8) + b"0")
        taken.recv(1)

    assert "was silent for 1 s" in await _refused(resolver, silent)


async def test_a_head_that_drips_ends(resolver: Resolver) -> None:
    def drip(taken: socket.socket, request: Request) -> None:
        taken.sendall(b"HTTP/1.1 200 X\r\n")
        while True:
            taken.sendall(b"a: b\r\n")
            time.sleep(0.05)

    assert "gave no answer within" in await _refused(resolver, drip)


@pytest.mark.parametrize(
    ("send", "reason"),
    [
        (closing(b"HTTP/1.1 100 C\r\n\r\n" * 100_000), "sends more around the file"),
        (closing(b"\0\1\2 what\r\n\r\n"), "speaks no HTTP"),
        (closing(), "without an answer"),
        (closing(head(200, content_length=8, content_encoding="gzip"), SMALL), "sends the encoding 'gzip'"),
        (closing(head(200, transfer_encoding="gzip, chunked"), SMALL), "want chunks or a length"),
        (closing(head(200, content_length="-8"), SMALL), "want one number of bytes"),
        (closing(head(200, content_length=7), SMALL), "is short: 7 bytes are announced, 8 are wanted"),
        (closing(head(200, content_length=8), SMALL[:5]), "broke off after 5 of 8 bytes"),
        (closing(head(206, content_length=8, content_range="bytes 0-7/8"), SMALL), "answers 206"),
        (closing(head(404)), "answers 404"),
        (closing(head(503)), "answers 503"),
        (closing(head(302, location="https://example.org/")), "sends a redirect"),
        (closing(head(200, transfer_encoding="chunked"), b"zz\r\n"), "broke off inside a chunk"),
        (closing(head(200, transfer_encoding="chunked"), b"1\r\n0\r\n0\r\n" + b"a: b\r\n" * 99_999), "around the file"),
    ],
)  # fmt: skip
async def test_what_is_no_plain_answer_is_refused_by_name(
    resolver: Resolver, store: Store, send: Send, reason: str
) -> None:
    assert reason in await _refused(resolver, send)
    assert [] == left(store)


async def test_an_etag_that_is_declared_is_compared_and_its_file_found_again(resolver: Resolver, store: Store) -> None:
    from weft_files import Checksum, Wanted

    with serving(whole(SMALL, '"two"')) as origin:
        one, two = (Wanted("model.gguf", 8, Checksum("etag", each), 8) for each in ("one", "two"))
        with pytest.raises(NotFetched, match="checksum mismatch: etag two came, etag:one is wanted"):
            await resolver.fetch(one, [Address(origin.url)])
        assert [] == left(store)
        first = await resolver.fetch(two, [Address(origin.url)])
        assert first == await resolver.fetch(two, [Address(origin.url)])
        assert 2 == len(origin.asked)


async def test_the_next_address_gives_what_the_first_does_not_and_all_reasons_are_kept(
    resolver: Resolver, store: Store
) -> None:
    body = content(300_000)
    wrong = content(300_000, seed=1)
    with serving(whole(wrong)) as bad, serving(closing(head(404))) as gone, serving(ranged(body)) as good:
        blob = await resolver.fetch(wanted(body), [Address(bad.url), Address(gone.url), Address(good.url)])
        assert body == blob.path.read_bytes()
        with pytest.raises(NotFetched) as refused:
            await resolver.fetch(wanted(wrong + b"0"), [Address(gone.url, said="the hub"), Address(bad.url)])
    assert ("the hub", "answers 404") == refused.value.tries[0]
    assert "is short" in refused.value.tries[1][1]


async def test_a_mirror_that_poisons_half_of_a_file_doesnt_keep_the_honest_one_from_giving_it(
    resolver: Resolver,
) -> None:
    body = content(200_000)
    wrong = content(200_000, seed=1)
    with (
        serving(closing(head(200, content_length=200_000), wrong[:100_000])) as bad,
        serving(ranged(body)) as good,
    ):
        blob = await resolver.fetch(wanted(body), [Address(bad.url), Address(good.url)])
    assert body == blob.path.read_bytes()


async def test_a_hubs_redirect_is_followed_without_the_secret_and_only_to_where_reach_lets_it(
    resolver: Resolver, store: Store
) -> None:
    with serving(ranged(SMALL)) as cdn:

        def hub(taken: socket.socket, request: Request) -> None:
            there = {"/model.gguf": "/next", "/next": cdn.url, "/evil": "http://localhost:9/x"}
            taken.sendall(head(302, location=there.get(request.path, "/evil"), content_length=0))

        with serving(hub) as origin:
            headers = {"authorization": "Bearer secret"}
            await resolver.fetch(wanted(SMALL), [Address(origin.url, headers, "hub")])
            assert [None] == [each.headers.get("authorization") for each in cdn.asked]
            assert ["Bearer secret"] * 2 == [each.headers.get("authorization") for each in origin.asked]
            evil = Address(origin.url.replace("model.gguf", "other"), headers, "hub")
            with pytest.raises(NotFetched, match="localhost:9 in WEFT_SOURCES_ALLOW"):
                await resolver.fetch(wanted(b"other"), [evil])


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("http://example.org/x", "is plain http"),
        ("https://10.0.0.1/x", "no public address"),
        ("https://[::1]/x", "no public address"),
        ("http://169.254.169.254/latest", "is plain http"),
        ("https://169.254.169.254/latest", "link-local"),
        ("http://127.1:1/x", "127.1"),
        ("file:///etc/passwd", "want an address that begins with https://"),
        ("//localhost:9/x", "localhost:9"),
        ("https://user:pass@example.org/x", "holds a user"),
    ],
)
async def test_a_hub_leads_nobody_to_plain_http_or_into_the_own_network(
    store: Store, bounds: Bounds, location: str, reason: str
) -> None:
    def leads_on(taken: socket.socket, request: Request) -> None:
        taken.sendall(head(302, location=location, content_length=0))

    with serving(leads_on) as origin:
        resolver = Resolver(store, Reach([f"127.0.0.1:{origin.port}"]), bounds=bounds)
        with pytest.raises(NotFetched, match=re.escape(reason)):
            await resolver.fetch(wanted(SMALL), [Address(origin.url, {}, "hub")])
        resolver.close()
    assert [] == left(store)


async def test_redirects_in_a_circle_end(resolver: Resolver) -> None:
    def circle(taken: socket.socket, request: Request) -> None:
        taken.sendall(head(302, location=request.path, content_length=0))

    with serving(circle) as origin, pytest.raises(NotFetched, match="more than 5 redirects"):
        await resolver.fetch(wanted(SMALL), [Address(origin.url, {}, "hub")])
    assert 6 == len(origin.asked)


@pytest.mark.parametrize(
    ("url", "allow", "reason"),
    [
        ("http://example.org/x", [], "is plain http"),
        ("https://127.0.0.1/x", [], "no public address"),
        ("https://[::ffff:10.0.0.1]/x", [], "no public address"),
        ("https://[::1]:8443/x", ["[::1]:443"], "no public address"),
        ("https://localhost/x", [], "no public address"),
        ("http://169.254.169.254/latest", ["169.254.169.254"], "link-local"),
        ("https://[fd00:ec2::254]/x", ["fd00:ec2::254"], "metadata service"),
        ("ftp://example.org/x", [], "want an address that begins with https://"),
        ("https://u:p@example.org/x", [], "holds a user"),
        ("https://exa mple.org/x", [], "without spaces"),
    ],
)
async def test_who_may_not_be_asked_is_told_why(store: Store, url: str, allow: list[str], reason: str) -> None:
    resolver = Resolver(store, Reach(allow))
    with pytest.raises(NotFetched, match=reason):
        await resolver.fetch(wanted(SMALL), [Address(url)])
    resolver.close()


async def test_a_registered_node_may_lie_in_the_own_network_and_a_cloud_is_asked_nothing_all_the_same(
    store: Store,
) -> None:
    resolver = Resolver(store, Reach())
    with serving(ranged(SMALL)) as node:
        blob = await resolver.fetch(wanted(SMALL), [Address(node.url, node="node-1.weft")])
    assert SMALL == blob.path.read_bytes()
    with pytest.raises(NotFetched, match="link-local"):
        await resolver.fetch(wanted(b"other"), [Address("http://169.254.169.254/latest", node="node-1.weft")])
    resolver.close()


def test_an_address_shows_neither_secrets_nor_signatures() -> None:
    address = Address("https://example.org:8443/a/b?X-Amz-Signature=secret", {"authorization": "secret"})
    assert "https://example.org:8443/a/b" == address.said
    assert "secret" not in repr(address)

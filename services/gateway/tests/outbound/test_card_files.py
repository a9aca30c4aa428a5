"""A gateway comes by the files of a model's card: verified, once, from the nearest that has them, or says why not."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from weft_contracts.card import BY_SLUG, slug_of
from weft_contracts.certificates import GATEWAY, node_role
from weft_contracts.facts.source import HfSource, PathSource
from weft_contracts.ids import NodeId
from weft_gateway.domain.card_files import CardFileAway, CardSettings
from weft_gateway.outbound.fetched_card_files import FetchedCardFiles
from weft_identity import authority
from weft_runtime.tls import TlsFolder
from weft_testing.hub_server import hub_server
from weft_testing.origin import Request, head, serving, whole
from weft_testing.publishing_mesh import NAME, published
from weft_testing.wanted_files import QUICK

from .reading_gateway import BODY, CHECKSUM, FILE, Gateway, port_of


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    made = Gateway(tmp_path / "cards")
    yield made
    await made.files.close()


async def test_a_file_comes_from_the_node_that_offers_it_and_then_from_this_hosts_disk(gateway: Gateway) -> None:
    with serving(whole(BODY)) as worker:
        gateway.mesh.publish(1, FILE, port=port_of(worker))
        assert BODY == await gateway.content()
    assert [f"{BY_SLUG}/{slug_of(NAME)}/tokenizer.json?checksum={CHECKSUM.replace(':', '%3A')}"] == [
        each.path for each in worker.asked
    ]

    assert BODY == await gateway.content()
    assert 1 == len(worker.asked)
    assert 1 == gateway.blobs.asked


async def test_the_object_store_is_asked_before_any_node(gateway: Gateway) -> None:
    gateway.blobs.there = {FILE.blake3: BODY}
    with serving(whole(BODY)) as worker:
        gateway.mesh.publish(1, FILE, port=port_of(worker))
        assert BODY == await gateway.content()
    assert [] == worker.asked


async def test_what_the_object_store_holds_wrongly_comes_from_a_node(gateway: Gateway) -> None:
    gateway.blobs.there = {FILE.blake3: BODY[:-1] + b"?"}
    with serving(whole(BODY)) as worker:
        gateway.mesh.publish(1, FILE, port=port_of(worker))
        assert BODY == await gateway.content()


async def test_a_node_that_lies_or_is_gone_is_passed_over(gateway: Gateway) -> None:
    with serving(whole(BODY[:-1] + b"?")) as liar, serving(whole(BODY)) as honest:
        gateway.mesh.publish(1, FILE, port=port_of(liar))
        gateway.mesh.publish(2, FILE, port=1)
        gateway.mesh.publish(3, FILE, port=port_of(honest))
        assert BODY == await gateway.content()


@pytest.mark.parametrize(("shown", "given"), [("n-1", True), ("n-2", False)])
async def test_where_the_mesh_speaks_tls_a_node_must_show_its_own_certificate(
    tmp_path: Path, shown: str, given: bool
) -> None:
    (tmp_path / "trust").mkdir()
    mesh = authority.load_or_make(tmp_path / "trust")
    mesh.lay_out(tmp_path / "node", node_role(NodeId(shown)))
    mesh.lay_out(tmp_path / "gateway", GATEWAY)
    gateway = Gateway(tmp_path / "cards", tls=TlsFolder(tmp_path / "gateway"))
    with serving(whole(BODY), TlsFolder(tmp_path / "node").server()) as worker:
        gateway.mesh.publish(1, FILE, port=port_of(worker))
        if given:
            assert BODY == await gateway.content()
        else:
            with pytest.raises(CardFileAway, match="node node-1"):
                await gateway.content()
    await gateway.files.close()


async def test_why_a_file_can_not_be_had_is_one_sentence_and_nobody_is_asked_again_for_a_while(
    gateway: Gateway,
) -> None:
    with serving(whole(BODY + b"more")) as worker:
        gateway.mesh.publish(1, FILE, port=port_of(worker))
        with pytest.raises(CardFileAway) as first:
            await gateway.content()
        with pytest.raises(CardFileAway) as again:
            await gateway.content()

    assert str(first.value) == str(again.value)
    assert (
        f"tokenizer.json of {NAME} can't be had: the mesh's object store does not have it; node node-1 exceeds cap: "
        "65004 bytes are announced, 65000 are wanted"
    ) == str(first.value)
    assert (1, 1) == (len(worker.asked), gateway.blobs.asked)


async def test_when_the_pause_is_over_it_comes_back_by_itself(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft_gateway.outbound.fetched_card_files.AWAY_S", 0.0)
    gateway.mesh.publish(1, FILE)
    with pytest.raises(CardFileAway, match="node node-1"):
        await gateway.content()

    gateway.blobs.there = {FILE.blake3: BODY}

    assert BODY == await gateway.content()


async def test_the_publisher_that_died_is_stood_in_for_by_another_replica_the_store_or_the_source(
    tmp_path: Path,
) -> None:
    with hub_server() as hub, serving(whole(BODY)) as worker:
        commit = hub.repository("o/m", {"tokenizer.json": BODY})
        for others, stored in ((True, False), (False, True), (False, False)):
            folder = tmp_path / f"{others}{stored}"
            source = HfSource(repository="o/m", revision=commit)
            gateway = Gateway(folder, source, FILE, hub=hub.url)
            gateway.mesh.publish(1, FILE, port=1)
            if others:
                gateway.mesh.publish(2, FILE, port=port_of(worker))
            gateway.blobs.there = {FILE.blake3: BODY} if stored else {}
            gateway.mesh.lose(1)
            assert BODY == await gateway.content()
            await gateway.files.close()
    assert 1 == len(worker.asked)


async def test_a_gated_source_is_said_to_be_one(tmp_path: Path) -> None:
    with hub_server() as hub:
        commit = hub.repository("o/m", {"tokenizer.json": BODY}, gated=True)
        gateway = Gateway(tmp_path, HfSource(repository="o/m", revision=commit), FILE, hub=hub.url)
        gateway.mesh.publish(1, FILE, self_hosted=False)
        with pytest.raises(
            CardFileAway,
            match=r"o/m/tokenizer\.json at .* is gated or private, and this gateway has no right",
        ):
            await gateway.content()
        await gateway.files.close()


async def test_two_sets_of_workers_with_one_models_name_and_two_tokenizers_are_kept_apart(tmp_path: Path) -> None:
    """Each answers by the model's slug and the file's name, and has another content under them."""
    bodies = (BODY, b'{"model": "another"}')
    gateways = [Gateway(tmp_path / "one host"), Gateway(tmp_path / "one host")]
    for gateway, body in zip(gateways, bodies, strict=True):
        with serving(whole(body)) as worker:
            gateway.mesh.publish(1, published(body), port=port_of(worker))
            assert body == await gateway.content()

    for gateway, body in zip(gateways, bodies, strict=True):
        assert body == await gateway.content()
        await gateway.files.close()


async def test_of_two_revisions_tokenizers_each_is_asked_for_by_its_content(gateway: Gateway) -> None:
    other = published(b'{"model": "another"}')
    bodies = {CHECKSUM: BODY, f"blake3:{other.blake3}": b'{"model": "another"}'}

    def send(taken: socket.socket, request: Request) -> None:
        body = bodies[request.path.partition("checksum=")[2].replace("%3A", ":")]
        taken.sendall(head(200, content_length=len(body)) + body)

    with serving(send) as worker:
        gateway.mesh.publish(1, FILE, port=port_of(worker))
        first = gateway.file()
        gateway.mesh.accept(gateway.mesh.spec.model_copy(update={"context_tokens": 2048}))
        gateway.mesh.publish(2, other, port=port_of(worker))

        assert f"blake3:{other.blake3}" == gateway.file().checksum
        assert b'{"model": "another"}' == await gateway.content()
        assert BODY == await gateway.content(first)


async def test_a_damaged_file_is_fetched_anew_and_a_good_one_is_not(gateway: Gateway) -> None:
    gateway.blobs.there = {FILE.blake3: BODY}
    gateway.mesh.publish(1, FILE)
    path = await gateway.files.file(NAME, gateway.file())
    assert BODY == await gateway.content()
    assert 1 == gateway.blobs.asked

    await asyncio.to_thread(_damage, path)

    assert BODY == await gateway.content()
    assert 2 == gateway.blobs.asked


def _damage(path: Path) -> None:
    path.chmod(0o600)
    path.write_bytes(BODY[:-1] + b"?")


async def test_who_gives_up_waiting_takes_the_file_from_nobody(gateway: Gateway) -> None:
    going = asyncio.Event()

    async def read(name: str, size: int | None, take: Callable[[bytes], object]) -> None:
        gateway.blobs.asked += 1
        await going.wait()
        take(BODY)

    files = FetchedCardFiles(gateway.directory, read, CardSettings(gateway.files._settings.folder), bounds=QUICK)
    gateway.mesh.publish(1, FILE)
    waiting = [asyncio.create_task(files.file(NAME, gateway.file())) for _ in range(8)]
    async with asyncio.timeout(30):
        while not gateway.blobs.asked:
            await asyncio.sleep(0.01)
    waiting[0].cancel()
    going.set()

    paths = await asyncio.gather(*waiting[1:])

    assert BODY == await asyncio.to_thread(paths[0].read_bytes)
    assert (True, 1) == (waiting[0].cancelled(), gateway.blobs.asked)
    await files.close()


async def test_a_folder_that_can_not_be_used_is_named_with_its_setting(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    gateway = Gateway(tmp_path / "file" / "cards")
    gateway.mesh.publish(1, FILE)

    with pytest.raises(CardFileAway, match=r"cards can't be used .* set WEFT_METADATA_FOLDER"):
        await gateway.content()


async def test_what_lies_at_the_models_path_is_no_link_to_a_device(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "tokenizer.json").symlink_to("/dev/zero")
    gateway = Gateway(tmp_path / "cards", PathSource(path=str(tmp_path / "m")))
    gateway.mesh.publish(1, FILE, self_hosted=False)

    with pytest.raises(CardFileAway, match=r"can't be read on this host \(it is no file\)"):
        await gateway.content()
    await gateway.files.close()


def test_the_card_of_a_model_that_is_none_or_published_nothing_is_none(gateway: Gateway) -> None:
    assert (None, None) == (gateway.files.card("no such"), gateway.files.card(NAME))


def test_two_answers_of_one_state_are_one_and_follow_the_log(gateway: Gateway) -> None:
    gateway.mesh.publish(1, FILE)
    first = gateway.files.card(NAME)
    gateway.mesh.publish(2, FILE)
    assert first is not None
    assert first is gateway.files.card(NAME)

    gateway.mesh.publish(3, published(b"x"))
    gateway.mesh.publish(4, published(b"x"))
    gateway.mesh.publish(5, published(b"x"))
    assert first != gateway.files.card(NAME)

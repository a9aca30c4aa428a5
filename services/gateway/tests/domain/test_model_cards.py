"""What a model's card is, and who offers its files, by the log alone."""

import pytest
from weft_contracts.card import Card, CardFile
from weft_contracts.facts.source import PathSource
from weft_contracts.facts.values import MetadataFile, ModelSpec
from weft_gateway.domain.model_card import MOST_HOLDERS, holders, present_card
from weft_gateway.projections.directory import Directory
from weft_testing.publishing_mesh import NAME, SPEC, PublishingMesh, published

RIGHT, WRONG = published(b"right"), published(b"wrong")
CONFIG = published(b"{}", "config.json")


@pytest.fixture
def directory() -> Directory:
    return Directory()


@pytest.fixture
def mesh(directory: Directory) -> PublishingMesh:
    return PublishingMesh(lambda commit: directory.fold([commit]))


def _card(directory: Directory) -> Card | None:
    view = directory.model(NAME)
    assert view is not None
    return present_card(directory.fleet, view)


def _holders(directory: Directory, file: MetadataFile) -> list[str]:
    view = directory.model(NAME)
    assert view is not None
    named = CardFile(name=file.name, checksum=f"blake3:{file.blake3}", size=file.size)
    return [holder.name for holder in holders(directory.fleet, view, named)]


def _checksums(card: Card | None) -> set[str]:
    return {file.checksum.removeprefix("blake3:") for file in card.files} if card is not None else set()


def test_nothing_published_is_no_card(directory: Directory, mesh: PublishingMesh) -> None:
    mesh.publish(1)

    assert None is _card(directory)


def test_what_most_replicas_published_is_the_card(directory: Directory, mesh: PublishingMesh) -> None:
    mesh.publish(1, WRONG, CONFIG, published(b"[]", "special_tokens_map.json"))
    mesh.publish(2, RIGHT)
    mesh.publish(3, RIGHT)

    assert {RIGHT.blake3} == _checksums(_card(directory))


def test_of_two_that_as_many_published_the_oldest_replicas_is_the_card(
    directory: Directory, mesh: PublishingMesh
) -> None:
    mesh.publish(1, RIGHT)
    mesh.publish(2, WRONG, CONFIG)

    assert {RIGHT.blake3} == _checksums(_card(directory))


def test_a_replica_that_is_not_ready_counts_where_none_is(directory: Directory, mesh: PublishingMesh) -> None:
    mesh.publish(1, RIGHT, CONFIG)
    mesh.publish(2, WRONG)
    mesh.lose(1)
    assert {WRONG.blake3} == _checksums(_card(directory))

    mesh.lose(2)
    assert {RIGHT.blake3, CONFIG.blake3} == _checksums(_card(directory))


def test_while_another_revision_is_not_established_the_card_is_of_the_one_that_serves(
    directory: Directory, mesh: PublishingMesh
) -> None:
    mesh.publish(1, RIGHT)
    mesh.accept(SPEC.model_copy(update={"context_tokens": 2048, "min_replicas": 2}))
    mesh.publish(2, WRONG)
    assert {RIGHT.blake3} == _checksums(_card(directory))

    mesh.publish(3, WRONG)
    assert {WRONG.blake3} == _checksums(_card(directory))


def test_a_file_is_asked_of_those_alone_that_published_this_content(directory: Directory, mesh: PublishingMesh) -> None:
    mesh.publish(1, WRONG)
    mesh.publish(2, RIGHT)
    mesh.publish(3, RIGHT, self_hosted=False)
    mesh.publish(4, RIGHT, self_hosted=None)
    mesh.publish(5, RIGHT, port=0)
    mesh.publish(6, RIGHT)
    mesh.lose(2)

    assert ["node-6", "node-2"] == _holders(directory, RIGHT)
    assert ["node-1"] == _holders(directory, WRONG)
    assert [] == _holders(directory, CONFIG)


def test_no_more_than_a_few_nodes_are_asked(directory: Directory, mesh: PublishingMesh) -> None:
    for number in range(1, MOST_HOLDERS + 3):
        mesh.publish(number, RIGHT)

    assert MOST_HOLDERS == len(_holders(directory, RIGHT))


def test_a_run_that_ended_offers_nothing(directory: Directory, mesh: PublishingMesh) -> None:
    mesh.publish(1, RIGHT)
    mesh.stop(1)

    assert (None, []) == (_card(directory), _holders(directory, RIGHT))


def test_where_else_a_file_lies_is_said_by_the_spec(directory: Directory) -> None:
    spec = ModelSpec(source=PathSource(path="/m"), engine="vllm")
    PublishingMesh(lambda commit: directory.fold([commit]), spec=spec).publish(1, CONFIG)

    card = _card(directory)
    assert card is not None
    assert card.configuration is not None
    assert ("/m/config.json",) == card.configuration.elsewhere

"""A run's card: what a worker said, and where else the same lies, which no worker says."""

from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.card import CardFile
from weft_contracts.facts.source import BuiltinSource, HfSource, HttpsSource, PathSource, S3Source, Source, SourceFile
from weft_contracts.facts.values import MetadataFile, ModelSpec, Weights
from weft_contracts.published_card import published_card
from weft_contracts.source_keys import source_of

HASH = "ab" * 32
CONFIG = MetadataFile(name="config.json", size=11, blake3=HASH)
MADE = MetadataFile(name="tokenizer.json", size=7, blake3=HASH)
LISTED = (SourceFile(name="model.safetensors", size=9), SourceFile(name="config.json", size=11))


def _spec(source: Source, format: str = "safetensors", files: tuple[SourceFile, ...] = ()) -> ModelSpec:
    weights = Weights.model_validate({"format": format})
    return ModelSpec(source=source, engine="e", weights=weights, files=files)


def _elsewhere(spec: ModelSpec, file: MetadataFile = CONFIG) -> tuple[str, ...]:
    card = published_card(spec, (file,), True)
    assert card is not None
    return card.files[0].elsewhere


def test_a_card_holds_what_a_worker_published_each_file_in_its_slot() -> None:
    card = published_card(_spec(BuiltinSource(name="tiny")), (CONFIG, MADE), True)

    assert card is not None
    assert CardFile(name="config.json", checksum=f"blake3:{HASH}", size=11) == card.configuration
    assert CardFile(name="tokenizer.json", checksum=f"blake3:{HASH}", size=7) == card.tokenizer
    assert card.is_new_form


def test_files_beside_a_path_lie_there_too() -> None:
    assert ("/m/one/config.json",) == _elsewhere(_spec(PathSource(path="/m/one/")))
    assert ("/m/config.json",) == _elsewhere(_spec(PathSource(path="/m/one.gguf"), "gguf"))


def test_a_file_that_the_source_lists_can_be_had_there_by_its_own_key() -> None:
    hub = HfSource(repository="o/m", revision="a" * 40, file="Q4_K_M")
    (found,) = _elsewhere(_spec(hub, files=LISTED))
    assert HfSource(repository="o/m", revision="a" * 40, file="config.json") == source_of(found)
    bucket = S3Source(bucket="models", key="one/", endpoint="https://s3.example")
    (found,) = _elsewhere(_spec(bucket, files=LISTED))
    assert bucket.model_copy(update={"key": "one/config.json"}) == source_of(found)


def test_a_file_that_was_made_on_the_node_lies_at_no_source() -> None:
    assert () == _elsewhere(_spec(HfSource(repository="o/m"), files=LISTED), MADE)
    other = CONFIG.model_copy(update={"size": 12})
    assert () == _elsewhere(_spec(HfSource(repository="o/m"), files=LISTED), other)
    assert () == _elsewhere(_spec(HttpsSource(url="https://x.example/m.gguf"), "gguf"))


def test_the_card_of_an_older_worker_is_of_the_old_form() -> None:
    card = published_card(_spec(PathSource(path="/m")), (CONFIG,), None)

    assert card is not None
    assert not card.is_new_form
    assert {"path": "/m/config.json", "checksum": f"blake3:{HASH}"} == card.files[0].model_dump()


@given(st.lists(st.builds(MetadataFile, name=st.text(), blake3=st.text() | st.just(HASH)), max_size=90))
def test_nothing_that_a_worker_says_breaks_a_reader(said: list[MetadataFile]) -> None:
    card = published_card(
        _spec(PathSource(path="/m")), (*said, MetadataFile(name="../../etc", size=1, blake3=HASH)), True
    )

    for file in card.files if card is not None else ():
        assert "/" not in file.name
        assert file.elsewhere[0].startswith("/m/")


def test_a_name_twice_counts_once() -> None:
    card = published_card(_spec(PathSource(path="/m")), (CONFIG, CONFIG.model_copy(update={"size": 3})), True)

    assert card is not None
    assert [11] == [file.size for file in card.files]


def test_nothing_published_is_no_card() -> None:
    assert None is published_card(_spec(PathSource(path="/m")), (), True)

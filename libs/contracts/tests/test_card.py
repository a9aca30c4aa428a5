"""Cards: what older workers wrote is read and written again, and only contents and names make a card what it is."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from weft_contracts.card import MOST_EXTRA, Card, CardFile, Reading, Slot, card_of, how_to_read, slot_of, slug_of

_SUM = f"blake3:{'ab' * 32}"
_NAMES = ["config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "vocab.json", "merges.txt"]
_SUMS = st.binary(min_size=32, max_size=32).map(lambda made: f"blake3:{made.hex()}")
_ADDRESSES = st.lists(st.text(max_size=20), max_size=3).map(tuple)
_ONE = st.builds(CardFile, name=st.sampled_from(_NAMES), checksum=_SUMS, size=st.none() | st.integers(0, 99))
_FILES = st.lists(_ONE, unique_by=lambda file: file.name)


def _file(name: str, size: int | None = 5) -> CardFile:
    return CardFile(name=name, checksum=_SUM, size=size, elsewhere=(f"/models/m/{name}",))


def test_what_an_older_worker_wrote_has_no_size_and_is_written_again_without_one() -> None:
    old = {"path": "/models/m/config.json", "checksum": _SUM}
    read = CardFile.model_validate(old)
    assert (None, "config.json", ("/models/m/config.json",)) == (read.size, read.name, read.elsewhere)
    assert old == read.model_dump(mode="json")


def test_an_older_reader_finds_path_and_checksum_in_what_is_written_now() -> None:
    written = json.loads(_file("config.json").model_dump_json())
    assert ("/models/m/config.json", _SUM, 5) == (written["path"], written["checksum"], written["size"])


@given(
    st.builds(CardFile, name=st.sampled_from(_NAMES), checksum=_SUMS, size=st.none() | st.integers(0, 9)), _ADDRESSES
)
def test_every_file_is_read_as_it_was_written(file: CardFile, elsewhere: tuple[str, ...]) -> None:
    whole = file.model_copy(update={"elsewhere": elsewhere})
    assert whole == CardFile.model_validate_json(whole.model_dump_json())


@pytest.mark.parametrize(
    "checksum",
    ["invalid", "blake3:a:b", f"sha256:{'ab' * 32}", "sha256:x", f"blake3:{'ab' * 31}", f"blake3:{'AB' * 32}", ""],
)
def test_a_checksum_that_is_not_blake3_of_64_hex_digits_is_refused(checksum: str) -> None:
    with pytest.raises(ValidationError):
        CardFile(name="config.json", checksum=checksum)


@pytest.mark.parametrize("name", ["", "..", "../x", "a/b", ".hidden", "a\\b", "a\n", "%2e"])
def test_a_name_that_is_more_than_a_name_is_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        CardFile(name=name, checksum=_SUM)


@given(_FILES, st.randoms(use_true_random=False), _ADDRESSES)
def test_neither_order_nor_places_nor_sizes_change_a_digest(
    files: list[CardFile], chance: Any, elsewhere: tuple[str, ...]
) -> None:
    moved = [file.model_copy(update={"elsewhere": elsewhere, "size": None}) for file in files]
    chance.shuffle(moved)
    assert card_of(tuple(files)).digest == card_of(tuple(moved)).digest


@given(_FILES.filter(bool), _SUMS)
def test_another_content_or_name_is_another_digest(files: list[CardFile], other: str) -> None:
    card, first = card_of(tuple(files)), files[0]
    changed = first.model_copy(update={"checksum": other})
    renamed = first.model_copy(update={"name": "another.json"})
    assert (other == first.checksum) == (card.digest == card_of((changed, *files[1:])).digest)
    assert card.digest != card_of((renamed, *files[1:])).digest


def test_a_card_is_of_the_new_form_only_if_every_file_has_a_size() -> None:
    whole = card_of((_file("config.json"), _file("vocab.json")))
    partly = card_of((_file("config.json"), _file("vocab.json", None)))
    assert [True, False, False] == [whole.is_new_form, partly.is_new_form, Card().is_new_form]


@pytest.mark.parametrize(
    ("name", "slot"),
    [
        ("config.json", Slot.CONFIGURATION),
        ("tokenizer.json", Slot.TOKENIZER),
        ("tokenizer.model", Slot.TOKENIZER),
        ("tokenizer_config.json", Slot.TOKENIZER_CONFIGURATION),
        ("chat_template.jinja", Slot.CHAT_TEMPLATE),
        ("chat_template.json", Slot.CHAT_TEMPLATE),
        ("generation_config.json", Slot.GENERATION_CONFIGURATION),
        ("vocab.json", Slot.EXTRA),
    ],
)
def test_a_name_says_which_slot_a_file_belongs_to(name: str, slot: Slot) -> None:
    assert slot is slot_of(name)
    assert (name,) == tuple(file.name for file in card_of((_file(name),)).files)


def test_of_two_files_for_one_slot_the_first_has_it() -> None:
    card = card_of((_file("tokenizer.json"), _file("tokenizer.model")))
    assert card.tokenizer == _file("tokenizer.json")
    assert (_file("tokenizer.model"),) == card.extra


def test_a_file_in_a_slot_that_is_not_its_own_a_name_twice_and_too_many_are_refused() -> None:
    with pytest.raises(ValidationError, match=r"config\.json is no tokenizer"):
        Card(tokenizer=_file("config.json"))
    with pytest.raises(ValidationError, match="twice"):
        Card(extra=(_file("a.txt"), _file("a.txt")))
    with pytest.raises(ValidationError, match="at most"):
        Card(extra=tuple(_file(f"{n}.txt") for n in range(MOST_EXTRA + 1)))


@given(st.text(), st.text())
def test_a_slug_is_safe_in_an_address_and_no_two_names_share_one(one: str, other: str) -> None:
    slug = slug_of(one)
    assert set(slug) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert 0 < len(slug) <= 61
    assert (one == other) == (slug == slug_of(other))


def test_two_names_that_read_alike_have_two_slugs() -> None:
    assert slug_of("Qwen/Qwen3-0.6B") != slug_of("qwen-qwen3-0-6b")
    assert slug_of("Qwen/Qwen3-0.6B").startswith("qwen-qwen3-0-6b-")


@pytest.mark.parametrize(
    ("worker", "self_hosted", "gateway_is_new", "reading"),
    [
        ("old", False, False, Reading.BY_SOURCE_PATH),
        ("old", False, True, Reading.BY_SOURCE_PATH),
        ("new", False, False, Reading.BY_SLOTS),
        ("new", False, True, Reading.BY_OWN_ADDRESS),
        ("new", True, True, Reading.FROM_WORKER),
        ("new", True, False, Reading.BY_SOURCE_PATH),
    ],
)
def test_old_and_new_workers_and_gateways_read_one_another(
    worker: str, self_hosted: bool, gateway_is_new: bool, reading: Reading
) -> None:
    card = card_of((_file("config.json", 5 if worker == "new" else None), _file("tokenizer.json", 5)))
    assert reading is how_to_read(card, reader_is_new=gateway_is_new, self_hosted=self_hosted)

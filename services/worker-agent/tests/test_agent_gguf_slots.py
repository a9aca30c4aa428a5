"""What stands in a GGUF file's header becomes real files: made once on a node, the same on each, or not at all."""

import asyncio
import json
import os
from pathlib import Path

import pytest
import weft_tiny
from weft_contracts.card import Slot, slot_of
from weft_contracts.facts.values import Weights
from weft_worker_agent.outbound.files.found import Found
from weft_worker_agent.outbound.files.gguf_slots import GgufSlots
from weft_worker_agent.outbound.files.metadata import Offer, offers
from weft_worker_agent.outbound.files.model_files import look
from weft_worker_agent.outbound.files.publishing import Publishing

MADE = ["chat_template.jinja", "tokenizer.json", "tokenizer_config.json"]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "models").mkdir()
    path = tmp_path / "models" / "model.gguf"
    path.write_bytes(weft_tiny.gguf_path().read_bytes())
    return path


@pytest.fixture
def sleeper(tmp_path: Path) -> Path:
    """A python that says which process it is, and sleeps."""
    path = tmp_path / "sleeper"
    path.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 600\n")
    path.chmod(0o700)
    return path


def _ended(pid: Path) -> bool:
    try:
        os.kill(int(pid.read_text()), 0)
    except ProcessLookupError:
        return True
    return False


def _rewrite(path: Path, old: bytes, new: bytes) -> None:
    content = path.read_bytes()
    assert 1 == content.count(old)
    path.write_bytes(content.replace(old, new))


def _damage(offered: tuple[Offer, ...], name: str) -> None:
    path = next(each.content for each in offered if each.file.name == name)
    assert isinstance(path, Path)
    path.chmod(0o600)
    path.write_bytes(b"{}")


def _names(offered: tuple[Offer, ...]) -> list[str]:
    return sorted(offer.file.name for offer in offered)


def _contents(offered: tuple[Offer, ...]) -> dict[str, bytes]:
    return {each.file.name: each.content.read_bytes() for each in offered if isinstance(each.content, Path)}


async def test_a_header_becomes_files_with_the_same_bytes_on_each_node(model: Path, tmp_path: Path) -> None:
    one = await GgufSlots(tmp_path / "one").offers(model)
    other = await GgufSlots(tmp_path / "other").offers(model)

    assert MADE == _names(one)
    assert _contents(one) == _contents(other)
    assert [each.file for each in one] == [each.file for each in other]
    assert "BPE" == json.loads(_contents(one)["tokenizer.json"])["model"]["type"]
    assert (weft_tiny.folder() / "chat_template.jinja").read_bytes() == _contents(one)["chat_template.jinja"]


async def test_what_was_made_is_found_again_by_a_later_start_and_made_once_for_two_at_a_time(
    model: Path, tmp_path: Path
) -> None:
    slots = GgufSlots(tmp_path / "slots")
    first, second = await asyncio.gather(slots.offers(model), slots.offers(model))

    later = await GgufSlots(tmp_path / "slots", python="/no/python").offers(model)

    assert first == second == later
    assert [] == list((tmp_path / "slots").glob("making-*"))


async def test_what_was_damaged_since_is_made_anew(model: Path, tmp_path: Path) -> None:
    slots = GgufSlots(tmp_path / "slots")
    before = await slots.offers(model)
    good = _contents(before)
    _damage(before, "tokenizer.json")

    assert good == _contents(await slots.offers(model))


async def test_another_file_under_the_same_name_is_another_models(model: Path, tmp_path: Path) -> None:
    slots = GgufSlots(tmp_path / "slots")
    await slots.offers(model)
    _rewrite(model, b"tokenizer.chat_template", b"tokenizer.chat_nothing!")

    assert MADE[1:] == _names(await slots.offers(model))


async def test_what_an_agent_left_half_made_is_cleared_and_not_offered(tmp_path: Path) -> None:
    # given an agent that was killed while it made them
    left = tmp_path / "slots" / "making-0123456789abcdef"
    left.mkdir(parents=True)
    (left / "tokenizer.json").write_bytes(b'{"half": ')

    made = await GgufSlots(tmp_path / "slots").offers(weft_tiny.gguf_path())

    assert not left.exists()
    (tokenizer,) = [offer for offer in made if offer.file.name == "tokenizer.json"]
    assert isinstance(tokenizer.content, Path)
    assert "model" in json.loads(tokenizer.content.read_bytes())


@pytest.mark.parametrize("python", ["/no/python", "/bin/false"])
async def test_where_none_can_be_made_nothing_is_offered_and_it_is_tried_again(
    model: Path, tmp_path: Path, python: str
) -> None:
    assert () == await GgufSlots(tmp_path / "slots", python=python).offers(model)

    assert MADE == _names(await GgufSlots(tmp_path / "slots").offers(model))


async def test_a_process_that_comes_to_no_end_is_ended(model: Path, sleeper: Path, tmp_path: Path) -> None:
    assert () == await GgufSlots(tmp_path / "slots", python=str(sleeper), within_s=1.0).offers(model)

    assert _ended(tmp_path / "pid")


async def test_a_vocabulary_that_gives_no_tokenizer_leaves_the_template_and_is_not_asked_again(
    model: Path, tmp_path: Path
) -> None:
    kind = b"tokenizer.ggml.model" + (8).to_bytes(4, "little") + (4).to_bytes(8, "little")
    _rewrite(model, kind + b"gpt2", kind + b"what")

    assert MADE[:1] == _names(await GgufSlots(tmp_path / "slots").offers(model))

    assert MADE[:1] == _names(await GgufSlots(tmp_path / "slots", python="/no/python").offers(model))


async def test_what_the_header_holds_goes_before_a_file_beside_it(model: Path, tmp_path: Path) -> None:
    for name in ("tokenizer.json", "config.json"):
        (model.parent / name).write_text("{}")
    publishing = Publishing(GgufSlots(tmp_path / "slots"))

    offered = await publishing.offers(look(f"path:{model}", "llama.cpp"))

    assert sorted([*MADE, "config.json"]) == _names(offered)
    assert b"{}" != _contents(offered)["tokenizer.json"]
    assert b"{}" == _contents(offered)["config.json"]


async def test_what_ships_with_a_built_in_model_is_published_as_it_is(tmp_path: Path) -> None:
    publishing = Publishing(GgufSlots(tmp_path / "slots", python="/no/python"))

    offered = await publishing.offers(look("builtin:tiny", "llama.cpp"))

    assert {Slot.CONFIGURATION, Slot.TOKENIZER, Slot.TOKENIZER_CONFIGURATION, Slot.CHAT_TEMPLATE} <= {
        slot_of(each.file.name) for each in offered
    }
    assert not (tmp_path / "slots").exists()


async def test_a_node_that_offers_nothing_publishes_what_lies_at_the_source(model: Path, tmp_path: Path) -> None:
    (model.parent / "config.json").write_text("{}")
    publishing = Publishing(GgufSlots(tmp_path / "slots"), self_host=False)

    assert ["config.json"] == _names(await publishing.offers(look(f"path:{model}", "llama.cpp")))
    assert not (tmp_path / "slots").exists()


async def test_a_file_above_the_cap_is_not_published(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "tokenizer.model").write_text("123")
    found = Found(tmp_path, 1, Weights(format="safetensors"), offers([tmp_path]))

    assert ["config.json"] == _names(await Publishing(most_bytes=2).offers(found))
    assert ["config.json", "tokenizer.model"] == _names(await Publishing(most_bytes=3).offers(found))

"""Which accelerators a worker uses, and which are made up."""

import pytest
from weft_contracts.facts.values import Vendor
from weft_worker_agent.domain.accelerators import Accelerator
from weft_worker_agent.domain.device_choice import BadChoice, parse_choice
from weft_worker_agent.domain.simulated_gpus import MOST, BadSimulation, parse_simulated

GB = 10**9


def card(vendor: Vendor, number: int, uuid: str = "") -> Accelerator:
    return Accelerator(vendor, number, f"{vendor} {number}", 8 * GB, uuid)


MACHINE = (
    card("nvidia", 0, "GPU-5a1c0d2e-0000-4000-8000-000000000001"),
    card("nvidia", 1, "GPU-5a1c0d2e-0000-4000-8000-000000000002"),
    card("amd", 0, "7bff74a1-0000-1000-80d4-2a7b9a2b4c51"),
    card("amd", 1),
)


@pytest.mark.parametrize(
    ("text", "used"),
    [
        ("all", ["nvidia 0", "nvidia 1", "amd 0", "amd 1"]),
        ("", ["nvidia 0", "nvidia 1", "amd 0", "amd 1"]),
        ("none", []),
        ("1", ["nvidia 1", "amd 1"]),
        ("nvidia:1", ["nvidia 1"]),
        ("nvidia:0, amd:1", ["nvidia 0", "amd 1"]),
        ("!nvidia:0", ["nvidia 1", "amd 0", "amd 1"]),
        ("nvidia,!1", ["nvidia 0"]),
        ("GPU-5A1C0D2E-0000-4000-8000-000000000002", ["nvidia 1"]),
        ("!7bff74a1-0000", ["nvidia 0", "nvidia 1", "amd 1"]),
        ("GPU-5a1c0d2e", ["nvidia 0", "nvidia 1"]),
    ],
)
def test_accelerators_are_chosen_and_left_out_by_number_vendor_and_uuid(text: str, used: list[str]) -> None:
    assert used == [one.name for one in parse_choice(text).of(MACHINE)]


def test_an_entry_that_speaks_of_no_accelerator_is_found_out() -> None:
    choice = parse_choice("nvidia:0,!GPU-9999ffff,intel:3")

    assert ("gpu-9999ffff", "intel:3") == choice.idle(MACHINE)


def test_a_short_piece_of_a_uuid_means_nobody() -> None:
    assert () == parse_choice("gpu-5a1").of(MACHINE)


@pytest.mark.parametrize("text", ["all,0", "!none", "nvida:0", "cpu:0", "0;1", "!", "a b"])
def test_a_choice_that_can_not_be_meant_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(BadChoice):
        parse_choice(text)


def test_accelerators_are_made_up_by_count_size_and_vendor() -> None:
    found = parse_simulated("2x80GB:nvidia, 24gib:amd,1 x 16GB")

    assert [
        ("nvidia", 0, 80 * GB, "SIM-nvidia-0"),
        ("nvidia", 1, 80 * GB, "SIM-nvidia-1"),
        ("amd", 0, 24 << 30, "SIM-amd-0"),
        ("nvidia", 2, 16 * GB, "SIM-nvidia-2"),
    ] == [(one.vendor, one.number, one.memory, one.uuid) for one in found]
    assert () == parse_simulated("")


@pytest.mark.parametrize("text", ["two", "2x", "0x80GB", "65x1GB", "2x80GB:voodoo", "2x80", "80%", "2x80GB:cpu"])
def test_a_simulation_that_can_not_be_meant_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(BadSimulation):
        parse_simulated(text)


def test_no_more_accelerators_are_simulated_than_a_machine_may_have_in_all() -> None:
    assert MOST == len(parse_simulated(f"{MOST - 1}x1GB,1x1GB"))
    with pytest.raises(BadSimulation, match=f"more than {MOST}"):
        parse_simulated(f"{MOST}x1GB,1x1GB")

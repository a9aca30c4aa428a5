"""What processes hold of AMD's and Intel's devices is read from the kernel's files, each opening of a device once."""

import os
import random
import subprocess
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_worker_agent.domain.drm_clients import DrmClient, client_of, held_by
from weft_worker_agent.outbound.machine.accelerators import drm_files
from weft_worker_agent.outbound.machine.accelerators.drm_files import card_memory, held_on_devices
from weft_worker_agent.outbound.machine.memory_use import with_children

SAMPLES = Path(__file__).parent / "samples"
AMD = "0000:03:00.0"
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


def sample(name: str) -> str:
    return (SAMPLES / f"fdinfo-{name}.txt").read_text()


@pytest.mark.parametrize(
    ("name", "client"),
    [
        ("amdgpu-6.2", DrmClient(AMD, "118", 8704 * MIB)),
        ("amdgpu-6.14", DrmClient(AMD, "214", 3 * GIB)),
        ("xe", DrmClient("0000:4d:00.0", "3", 21 * MIB)),
        ("i915-card", DrmClient("0000:9a:00.0", "39", 256 * MIB + 4096)),
        ("i915-graphics", DrmClient("0000:00:02.0", "39", None)),
    ],
)
def test_each_drivers_form_is_read_and_only_the_cards_own_memory_counts(name: str, client: DrmClient) -> None:
    assert client == client_of(sample(name))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "pos:\t0\nflags:\t02\n",
        "drm-driver:\tnouveau\ndrm-pdev:\t0000:03:00.0\ndrm-memory-vram:\t1 KiB\n",
        "drm-driver:\txe\ndrm-client-id:\t3\n",
    ],
)
def test_what_is_of_no_device_of_amds_or_intels_is_nothing(text: str) -> None:
    assert client_of(text) is None


def test_what_was_asked_for_counts_only_where_what_lies_there_is_not_told() -> None:
    told = "drm-driver: xe\ndrm-pdev: 0000:03:00.0\ndrm-total-vram0: 5 MiB\ndrm-total-vram1: 7\n"

    assert DrmClient(AMD, "", 5 * MIB + 7) == client_of(told)
    assert DrmClient(AMD, "", 2 * KIB + 7) == client_of(f"{told}drm-resident-vram0: 2 KiB\n")


@given(st.text(max_size=200))
def test_no_text_is_an_error(text: str) -> None:
    client_of(text)
    client_of(f"drm-driver: amdgpu\ndrm-pdev: {AMD}\n{text}")


clients = st.builds(
    DrmClient, st.sampled_from(["a", "b"]), st.sampled_from(["1", "2", "3"]), st.none() | st.integers(0, 99)
)


@given(st.lists(clients, max_size=8), st.randoms(use_true_random=False))
def test_doubled_descriptors_change_nothing_and_neither_does_their_order(
    given_: list[DrmClient], chance: random.Random
) -> None:
    doubled = [*given_, *given_]
    chance.shuffle(doubled)

    assert held_by(given_) == held_by(doubled)


@given(st.lists(clients, max_size=8, unique_by=lambda one: (one.address, one.id)))
def test_clients_add_up_for_each_device_and_one_that_is_not_known_makes_the_whole_unknown(
    given_: list[DrmClient],
) -> None:
    held = held_by(given_)

    assert {one.address for one in given_} == set(held)
    for address, size in held.items():
        of_it = [one.bytes for one in given_ if one.address == address]
        assert (None if None in of_it else sum(each or 0 for each in of_it)) == size


Opened = Callable[[int, str, str], None]


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    """Makes up, under a root of the test's own, that a process has a device open, as a sample says."""

    def make(pid: int, number: str, text: str, device: str = "/dev/dri/renderD128") -> None:
        process = tmp_path / "proc" / str(pid)
        for name in ("fd", "fdinfo"):
            (process / name).mkdir(parents=True, exist_ok=True)
        (process / "fd" / number).symlink_to(device)
        (process / "fdinfo" / number).write_text(text)

    return make


@contextmanager
def host_with_child() -> Generator[tuple[int, int]]:
    """A process, and one that it started."""
    program = ["sh", "-c", "sleep 60 & echo $!; wait"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        try:
            yield process.pid, child
        finally:
            subprocess.run(["kill", str(child), str(process.pid)], check=True)


def test_a_host_and_what_it_started_hold_what_they_opened_each_opening_once(opened: Opened, tmp_path: Path) -> None:
    with host_with_child() as (host, child):
        # given a host that opened AMD's card, and handed that on to its child, which opened it and Intel's as well
        opened(host, "5", sample("amdgpu-6.2"))
        opened(host, "6", sample("amdgpu-6.2"))
        opened(child, "5", sample("amdgpu-6.2"))
        opened(child, "9", sample("amdgpu-6.14"))
        opened(child, "11", sample("xe"))
        # when it is looked at
        held = held_on_devices(with_children([host]), tmp_path)
    # then
    assert {AMD: {host: 8704 * MIB + 3 * GIB}, "0000:4d:00.0": {host: 21 * MIB}} == held


def test_hosts_are_told_apart_and_those_that_opened_nothing_or_ended_are_not_told_of(
    opened: Opened, tmp_path: Path
) -> None:
    opened(11, "3", sample("amdgpu-6.2"))
    opened(12, "3", sample("amdgpu-6.14"))
    opened(13, "3", "pos:\t0\n")

    held = held_on_devices({11: [11], 12: [12], 13: [13], 14: [14]}, tmp_path)

    assert {AMD: {11: 8704 * MIB, 12: 3 * GIB}} == held


def test_files_of_other_devices_are_not_even_read(opened: Callable[..., None], tmp_path: Path) -> None:
    opened(11, "3", sample("amdgpu-6.2"), device="/home/somebody/file")

    assert {} == held_on_devices({11: [11]}, tmp_path)


def test_a_look_goes_through_so_many_files_and_tells_nothing_of_hosts_that_it_did_not_see_whole(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drm_files, "_MOST_FILES", 3)
    opened(11, "3", sample("amdgpu-6.2"))
    for number in "4567":
        opened(12, number, sample("amdgpu-6.14"))

    assert {AMD: {11: 8704 * MIB}} == held_on_devices({11: [11], 12: [12]}, tmp_path)


def test_a_host_whose_files_may_not_be_read_is_not_told_of(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(11, "3", sample("amdgpu-6.2"))
    opened(12, "3", sample("amdgpu-6.14"))
    readlink = os.readlink

    def refused(path: Path) -> str:
        if "/12/" in str(path):
            raise PermissionError(13, "Permission denied")
        return readlink(path)

    monkeypatch.setattr(os, "readlink", refused)

    assert {AMD: {11: 8704 * MIB}} == held_on_devices({11: [11], 12: [12]}, tmp_path)


def test_amds_driver_tells_what_is_used_of_a_card_and_others_do_not(tmp_path: Path) -> None:
    device = tmp_path / "sys/bus/pci/devices" / AMD
    device.mkdir(parents=True)
    assert card_memory(AMD, tmp_path) is None
    (device / "mem_info_vram_total").write_text("21458059264\n")
    (device / "mem_info_vram_used").write_text("27856896\n")

    assert (21458059264, 27856896) == card_memory(AMD, tmp_path)

"""A disk that fills while an engine is installed: a file system of its own, as small as it takes, in a namespace."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from weft_contracts.backends import BackendVariant
from weft_testing.wheels import wheels_of_installed, write_wheel
from weft_worker_agent.domain.disk_room import MORE_BYTES, lacks_room, size_text, tells_of_full_disk, was_full
from weft_worker_agent.outbound.backends import host_code

ECHO = Path(__file__).parents[3] / "tests" / "packages" / "echo" / "weft_echo"
MIB = 1 << 20
SMALL, LARGE = 24 * MIB, 1024 * MIB
_WORKER = """
import asyncio, json, subprocess, sys
from pathlib import Path
from weft_contracts.backends import BackendVariant
from weft_worker_agent.outbound.backends.first_run import InstallFailed
from weft_worker_agent.outbound.backends.installer import Installer
from weft_worker_agent.outbound.backends.sources import PackageSources

folder, wheels, variant, large = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4]

async def tried(variant, installer):
    try:
        made = await installer.want("echo", variant)
        said = {"made": made.name}
    except InstallFailed as failed:
        said = {"reason": failed.fault.reason, "room": failed.fault.room, "final": failed.fault.local}
    left = [path.name for path in folder.iterdir() if not path.name.endswith(".lock")]
    print(json.dumps({**said, "left": left, "free": installer.free, "waits": installer.room}), flush=True)

async def main():
    asked = BackendVariant.model_validate_json(variant)
    first, installer = (Installer(folder, PackageSources(offline=wheels), silence_s=120, at_once=1) for _ in "12")
    await tried(asked.model_copy(update={"disk": 500_000_000}), first)
    await tried(asked, installer)
    subprocess.run(["mount", "-o", f"remount,size={large}", str(folder)], check=True)
    await tried(asked, installer)
    await first.close()
    await installer.close()

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    wheels_of_installed(folder, host_code.requirements())
    files = {f"weft_echo/{path.name}": path.read_text() for path in ECHO.glob("*.py")}
    files["weft_echo/weights.txt"] = "0" * (2 * SMALL)
    entry = "[weft.engines]\necho = weft_echo.profile:PROFILE\n"
    write_wheel(folder, "weft-echo", "1.0", files, entry_points=entry)
    return folder


def test_a_full_disk_is_a_reason_with_figures_leaves_nothing_and_is_no_more_once_there_is_room(
    tmp_path: Path, wheels: Path
) -> None:
    # given a disk of 24 MiB, and an engine of 48 MiB whose recipe says that it takes next to nothing
    folder = tmp_path / "backends"
    folder.mkdir()
    variant = BackendVariant(
        vendor="cpu", package="weft-echo", version="1.0", requirements=("weft-echo==1.0",), disk=1_000_000
    )
    mounted = f'mount -t tmpfs -o size={SMALL} none "$1" && exec "$0" -c "$WORKER" "$@"'
    if shutil.which("unshare") is None:
        pytest.skip("no mount of one's own is to be had here")
    argv = ["unshare", "-Urm", "sh", "-c", mounted, sys.executable, str(folder), str(wheels)]
    # when one is tried that says what it takes, then this one, and this one again on a larger disk
    ran = subprocess.run(
        [*argv, variant.model_dump_json(), str(LARGE)],
        env={**os.environ, "WORKER": _WORKER},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if ran.returncode and "unshare: " in ran.stderr:  # the host forbids it
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"no mount of one's own is to be had here: {ran.stderr}")
    assert 0 == ran.returncode, ran.stderr
    refused, full, made = (json.loads(line) for line in ran.stdout.splitlines() if line.startswith('{"'))
    # then the first isn't begun
    assert f"it takes about 500 MB, and {size_text(SMALL)} are free on the disk of {folder}" in refused["reason"]
    assert [] == refused["left"]
    # and the second says that the disk was full, and how full it is now
    assert f"the disk of {folder} was full: it takes about 1 MB, and {size_text(full['free'])} are" in full["reason"]
    assert not [name for name in full["left"] if not name.startswith("code-")], "nothing half made"
    assert not full["final"]
    assert full["free"] < full["room"] <= LARGE
    assert {variant.digest: full["room"]} == full["waits"]
    # and the third is whole
    assert made["made"] in made["left"]
    assert {} == made["waits"]


@pytest.mark.parametrize(
    ("words", "full"),
    [
        ("error: failed to copy file: No space left on device (os error 28)", True),
        ("OSError: [Errno 122] Disk quota exceeded", True),
        ("error: Failed to fetch: Connection reset by peer (os error 104)", False),
    ],
)
def test_a_full_disk_is_known_by_the_systems_own_words(words: str, full: bool) -> None:
    assert full == tells_of_full_disk(words)


def test_what_a_disk_has_room_for_is_no_fault_and_what_is_not_known_is_tried() -> None:
    assert lacks_room("vllm", "0.32.0", 4_000_000_000, 4_000_000_000, "/x") is None
    assert lacks_room("vllm", "0.32.0", 4_000_000_000, None, "/x") is None
    fault = lacks_room("vllm", "0.32.0", 4_000_000_000, 1_200_000_000, "/x")
    assert fault is not None
    words = "vllm 0.32.0 could not be installed: it takes about 4.0 GB, and 1.2 GB are free on the disk of /x"
    assert (words, 4_000_000_000) == (fault.reason, fault.room)


def test_after_a_full_disk_as_much_as_was_free_is_not_enough() -> None:
    assert 5_000_000_000 + MORE_BYTES == was_full("vllm", "1", 4_000_000_000, 5_000_000_000, "/x").room
    assert 4_000_000_000 == was_full("vllm", "1", 4_000_000_000, 1_000_000_000, "/x").room
    assert "nobody knows" in was_full("vllm", "1", 1, None, "/x").reason


@pytest.mark.parametrize(("size", "text"), [(15_000_000_000, "15.0 GB"), (20_971_520, "21 MB"), (999, "999 bytes")])
def test_sizes_are_told_as_people_say_them(size: int, text: str) -> None:
    assert text == size_text(size)

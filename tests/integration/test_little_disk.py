"""A disk with little room, or none: a mesh starts, serves, says what it lacks, and ends.

Each story has a file system of its own, in a namespace, so that no root is needed.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from weft_testing.wheels import wheels_of_installed
from weft_worker_agent.outbound.backends.host_code import requirements

from .echo_engine import echo_entry, echo_wheel

pytestmark = pytest.mark.slow
STEPS = Path(__file__).with_name("little_disk.py")
_USER = ("unshare", "--user", "--map-user=1000", "--map-group=1000", "--keep-caps", "--mount", "--", "sh", "-c")
_MOUNTED = 'mount -t tmpfs -o size="$1",mode=700 tmpfs "$2" && shift 2 && exec "$@"'


def steps(name: str, size: str, folder: Path) -> None:
    """Run the steps of a story on a file system of so many bytes; what went wrong is told."""
    if any(shutil.which(tool) is None for tool in ("unshare", "setpriv")):
        pytest.skip("unshare and setpriv are not to be had")
    disk = folder / "disk"
    disk.mkdir()
    done = subprocess.run(
        [*_USER, _MOUNTED, "sh", size, str(disk), sys.executable, str(STEPS), name, str(disk)],
        env={k: v for k, v in os.environ.items() if not k.startswith("WEFT_")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    if "unshare" in done.stderr and "Operation not permitted" in done.stderr:
        pytest.skip("user namespaces are not to be had")
    assert 0 == done.returncode, (done.stdout + done.stderr)[-8000:]


@pytest.mark.sabotage("full-disk-goes-unreported")
@pytest.mark.sabotage("waits-on-a-full-disk")
def test_an_engine_that_a_full_disk_has_no_room_for_goes_elsewhere_and_comes_once_there_is_room(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheels_of_installed(wheels, requirements())
    echo_wheel(wheels, "1.0", weights=48 << 20)
    echo_entry(tmp_path, "1.0", disk=1_000_000)
    steps("engines", "2g", tmp_path)


@pytest.mark.sabotage("reserves-for-ever")
def test_on_a_disk_of_1_gb_a_model_outlives_a_failed_revision_its_engine_and_a_stop(tmp_path: Path) -> None:
    steps("small", "1g", tmp_path)


@pytest.mark.sabotage("limits-stay")
def test_a_state_that_was_made_on_a_large_disk_starts_on_a_small_one_and_says_when_that_is_full(tmp_path: Path) -> None:
    steps("shrinking", "4g", tmp_path)


@pytest.mark.sabotage("lists-never-again")
def test_a_full_disk_of_the_database_and_one_of_a_worker_stop_no_request_and_mend_with_room(tmp_path: Path) -> None:
    steps("parts", "2g", tmp_path)

"""One state, one owner, who is named."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from weft_servers.state_lock import Locked, acquire, holder_of


def test_a_second_owner_is_refused_and_told_who_holds_it(tmp_path: Path):
    with acquire(tmp_path / "state" / "lock", "weft up") as lock:
        lock.record(url="http://127.0.0.1:8080")

        with pytest.raises(Locked) as refused:
            acquire(tmp_path / "state" / "lock", "another")

    assert lock.holder == refused.value.holder
    for part in (
        str(tmp_path / "state"),
        "weft up",
        str(os.getpid()),
        lock.holder.since,
        "http://127.0.0.1:8080",
    ):
        assert part in str(refused.value)
    acquire(tmp_path / "state" / "lock", "another").release()
    assert getattr(holder_of(tmp_path / "state" / "lock"), "what", None) == "another"


def test_the_lock_of_a_killed_owner_is_free(tmp_path: Path):
    code = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from weft_servers.state_lock import acquire\n"
        "lock = acquire(Path(sys.argv[1]), 'killed')\n"
        "print('held', flush=True)\n"
        "time.sleep(60)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        owner.stdout.readline()
        with pytest.raises(Locked, match="killed"):
            acquire(tmp_path / "lock", "next")
        owner.kill()
        owner.wait(30)

        acquire(tmp_path / "lock", "next").release()


def test_a_child_that_inherits_the_lock_keeps_it(tmp_path: Path):
    lock = acquire(tmp_path / "lock", "server")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[lock.fd]) as child:
        lock.release()

        with pytest.raises(Locked):
            acquire(tmp_path / "lock", "next")
        child.communicate(b"\n", timeout=30)

    acquire(tmp_path / "lock", "next").release()


def test_a_lock_file_that_says_nothing_still_locks(tmp_path: Path):
    with acquire(tmp_path / "lock", "weft up"):
        (tmp_path / "lock").write_text("")

        with pytest.raises(Locked, match="another process") as refused:
            acquire(tmp_path / "lock", "next")

    assert refused.value.holder is None

"""`weft down` against launchers that end in their own ways."""

import subprocess
import sys
from pathlib import Path

from weft_embedded import down
from weft_embedded.state import State

SLOW_TO_EXIT = """
import signal, sys, threading, time
from pathlib import Path
from weft_embedded import run_file
from weft_embedded.state import State
from weft_servers import state_lock

state = State(Path(sys.argv[1]))
told = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: told.set())
with state_lock.acquire(state.lock, "weft up"):
    run_file.new("http://127.0.0.1").write(state)
    print("ready", flush=True)
    told.wait(60)
time.sleep(1)
print("gone", flush=True)
"""


def test_down_waits_for_a_launcher_that_lets_its_lock_go_before_it_is_gone(tmp_path: Path) -> None:
    state = State(tmp_path / "state")
    command = [sys.executable, "-c", SLOW_TO_EXIT, str(state.folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as launcher:
        assert launcher.stdout is not None
        assert launcher.stdout.readline() == "ready\n"

        forced = down.run(state)

        assert forced is None
        assert launcher.poll() is not None, "down came back before the launcher was gone"

"""What a killed host's children do: processes as vLLM starts them, without vLLM."""

import os
import subprocess
import sys
from importlib.metadata import entry_points

import psutil
from weft_engine.vllm_child import PARENT, end_with_parent

CHILD = "from weft_engine.vllm_child import end_with_parent as end; end(); "
WAIT = "print('here', flush=True); import time; time.sleep(600)"
GRANDCHILD = f"""{CHILD}import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", {CHILD + WAIT!r}])
time.sleep(600)"""
HOST = f"""import subprocess, sys, time
from weft_engine.vllm_child import bind_children
bind_children()
subprocess.Popen([sys.executable, "-c", {GRANDCHILD!r}])
time.sleep(600)"""


def test_children_and_theirs_end_with_a_host_that_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", HOST], stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        assert "here\n" == host.stdout.readline()
        below = psutil.Process(host.pid).children(recursive=True)

        host.kill()

        assert 2 == len(below)
        _, alive = psutil.wait_procs(below, timeout=30)
        assert [] == alive


def test_a_child_whose_host_ended_before_it_looked_ends_at_once() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    left = {**os.environ, PARENT: str(gone.pid)}
    assert 1 == subprocess.run([sys.executable, "-c", CHILD + WAIT], env=left, timeout=30, check=False).returncode


def test_vllm_s_processes_find_it_by_the_package_s_entry_points_and_import_nothing_of_the_host_with_it() -> None:
    own = [each for each in entry_points(name="weft") if each.group.startswith("vllm.")]
    assert {"vllm.platform_plugins", "vllm.general_plugins"} == {each.group for each in own}
    assert [end_with_parent] * len(own) == [each.load() for each in own]
    heavy = "import weft_engine.vllm_child, sys; print(*sys.modules.keys() & {'grpc', 'pydantic', 'weft_engine.host'})"
    assert (
        "" == subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True).stdout.strip()
    )


def test_where_no_host_bound_its_children_nothing_is_done() -> None:
    assert PARENT not in os.environ
    end_with_parent()
    assert PARENT not in os.environ

"""A real `systemd --user` runs what `weft install --systemd --user` makes, without any right of root's."""

from pathlib import Path

import httpx
import pytest
from weft_servers import port
from weft_testing.booted import Booted
from weft_testing.story import until

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
START_S = 180.0
QUESTION = {"model": "tiny", "messages": [{"role": "user", "content": "What is the capital of France?"}]}


@pytest.mark.sabotage("unit-stays-down")
def test_a_mesh_of_a_users_own_answers_comes_back_when_it_is_killed_and_leaves_nothing_when_it_is_uninstalled() -> None:
    with Booted(ROOT) as booted:
        ada, number = booted.user("ada"), port.choose()[0]

        def ask() -> str:
            return httpx.post(f"http://127.0.0.1:{number}/v1/chat/completions", json=QUESTION, timeout=60).text

        # given a unit that its manager calls started
        made = ada.weft("install", "--systemd", "--user", "--now", "--port", str(number), timeout=START_S)
        assert 0 == made.returncode, made.stdout + made.stderr
        assert "made /home/ada/.config/systemd/user/weft.service" in made.stdout
        # then it answers, and its processes may gain no right
        assert "Paris" in ask()
        pid = ada.show("weft.service", "MainPID")
        status = booted.read(f"/proc/{pid}/status")
        assert "NoNewPrivs:\t1\n" in status
        assert "Seccomp:\t2\n" in status
        # and when the launcher is killed, it is started again on its state
        assert 0 == ada.run("kill", "-9", pid).returncode
        until("it is started again", lambda: ada.show("weft.service", "NRestarts") == "1", 60)
        until("it serves again", lambda: ada.show("weft.service", "ActiveState") == "active", START_S)
        assert "Paris" in ask()
        # and when it is uninstalled, nothing runs, its unit is gone and its state is there
        gone = ada.weft("uninstall", "--systemd", "--user", timeout=START_S)
        assert 0 == gone.returncode, gone.stderr
        assert not booted.there("/home/ada/.config/systemd/user/weft.service")
        left = booted.run("sh", "-c", "pgrep -u ada -f 'weft_(embedded|gateway|registry)|postgres' || true").stdout
        assert "" == left
        assert booted.there("/home/ada/.local/state/weft/trust")

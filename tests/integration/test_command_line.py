"""The command line against a running mesh: conversation, logs, doctor, bench, completion, as people type them."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from weft_testing.story import MeshUnderTest, NotInTime, until

SLOW = {"source": {"kind": "simulated"}, "engine": "simulated", "engine_args": {"ms_per_token": 40}}
QUESTION = "What is the capital of France?"


@pytest.fixture(scope="module")
def own_mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshUnderTest]:
    """A mesh with two models: the built-in one, and a simulated one whose answers take their time."""
    with MeshUnderTest(tmp_path_factory.mktemp("typed")) as mesh:
        mesh.deploy("slow", SLOW).raise_for_status()
        until("slow is ready", lambda: mesh.ready_replicas("slow"))
        yield mesh


class Typist:
    """A person at a pseudo-terminal in which `weft` runs."""

    def __init__(self, mesh: MeshUnderTest, *words: str) -> None:
        own, theirs = pty.openpty()
        self._fd = own
        env = {k: v for k, v in os.environ.items() if not k.startswith("WEFT_")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "weft_cli", *words],
            env={**env, "WEFT_STATE": str(mesh.state), "TERM": "xterm", "NO_COLOR": "1"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self._seen = ""

    def types(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def presses_ctrl_c(self) -> None:
        os.kill(self.process.pid, signal.SIGINT)

    def sees(self, pattern: str, timeout: float = 30.0) -> str:
        """What came up to a pattern, which is then behind. Raises NotInTime."""
        deadline = time.monotonic() + timeout
        while (found := re.search(pattern, self._seen)) is None:
            if time.monotonic() > deadline or not self._read():
                raise NotInTime(f"{pattern!r} is not shown; shown is {self._seen[-2000:]!r}")
        text, self._seen = self._seen[: found.end()], self._seen[found.end() :]
        return text

    def _read(self) -> bool:
        if select.select([self._fd], [], [], 0.5)[0]:
            try:
                data = os.read(self._fd, 4096)
            except OSError:  # the other end is closed
                return False
            self._seen += data.decode(errors="replace")
            return bool(data)
        return True

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        os.close(self._fd)


@pytest.fixture
def typists() -> Iterator[list[Typist]]:
    """Those at work; ended when the test ends."""
    found: list[Typist] = []
    yield found
    for each in found:
        each.close()


@pytest.mark.sabotage("deadly-interrupt")
def test_ctrl_c_cancels_the_answer_and_the_conversation_goes_on(own_mesh: MeshUnderTest, typists: list[Typist]) -> None:
    # given somebody who picks one of two models
    person = Typist(own_mesh, "chat")
    typists.append(person)
    person.sees(r"which\? \[\d\] ")
    person.types("slow\n")
    person.sees("Talking to slow")
    # when a long answer is cancelled
    person.sees("> ")
    person.types("Tell me everything.\n")
    person.sees(r"everything\.\r\n.*\w\w\w")
    person.presses_ctrl_c()
    person.sees("cancelled")
    # then the gateway runs nothing any more, and the conversation goes on with another model
    until("nothing runs", lambda: own_mesh.status()["requests"]["running"] == 0)
    person.types("/clear\n/model tiny\n")
    person.sees("tiny is a toy")
    person.types(f"{QUESTION}\n")
    person.sees("Paris")
    # and Ctrl-D ends it
    person.sees("> ")
    person.types("\x04")
    assert 0 == person.process.wait(20)


@pytest.mark.sabotage("guessing-model")
def test_one_question_is_plain_text_with_an_exit_status(own_mesh: MeshUnderTest) -> None:
    answered = own_mesh.weft("chat", "-m", "tiny", QUESTION)
    assert (0, "The capital of France is Paris.\n", "") == (answered.returncode, answered.stdout, answered.stderr)
    piped = subprocess.run(
        [sys.executable, "-m", "weft_cli", "chat", "-m", "tiny"],
        input=f"{QUESTION}\n",
        env={**os.environ, "WEFT_STATE": str(own_mesh.state)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (0, answered.stdout) == (piped.returncode, piped.stdout)
    # several models serve, and there is nobody to choose
    unclear = own_mesh.weft("chat", QUESTION)
    assert (2, "") == (unclear.returncode, unclear.stdout)
    assert "slow, tiny" in unclear.stderr
    unknown = own_mesh.weft("chat", "-m", "nobody", QUESTION)
    assert 1 == unknown.returncode
    assert "tiny" in unknown.stderr


@pytest.mark.sabotage("anybodys-log")
def test_logs_of_a_process_and_of_a_replica_and_nothing_else(own_mesh: MeshUnderTest) -> None:
    # given a prompt that no log may hold
    secret = "Zaphodia-Prime-7731"
    own_mesh.chat(f"What is the capital of {secret}?")
    [tiny], [slow] = own_mesh.ready_replicas("tiny"), own_mesh.ready_replicas("slow")
    # when the logs are read
    gateway = own_mesh.weft("logs", "gateway", "--tail", "1000")
    by_id = own_mesh.weft("logs", tiny["id"], "--tail", "1000")
    by_model = own_mesh.weft("logs", "tiny", "--tail", "1000")
    other = own_mesh.weft("logs", slow["id"])
    # then each is its own
    assert "listening" in gateway.stdout
    assert f'"replica": "{tiny["id"]}"' in by_id.stdout or '"phase": "ready"' in by_id.stdout
    assert by_id.stdout == by_model.stdout
    assert other.stdout != by_id.stdout
    assert slow["id"] not in by_id.stdout
    assert own_mesh.weft("logs", tiny["id"], "--tail", "1").stdout == by_id.stdout.splitlines(keepends=True)[-1]
    # and no prompt is in any
    assert secret not in gateway.stdout + by_id.stdout
    # and nothing else can be read
    node = own_mesh.status()["nodes"][0]["addresses"]
    for path in ("..%2f..%2fnode.seed", "%2fetc%2fpasswd", "m-none-1", "worker-1"):
        assert 404 == own_mesh.http.get(f"http://{node['host']}:{node['http_port']}/logs/{path}").status_code
        assert 404 == own_mesh.http.get(f"{own_mesh.url}/api/replicas/{path}/logs").status_code
    nobody = own_mesh.weft("logs", "nobody")
    assert 1 == nobody.returncode
    assert "gateway" in nobody.stderr


@pytest.mark.sabotage("deaf-follower")
def test_a_followed_replicas_log_shows_its_end(own_mesh: MeshUnderTest, tmp_path: Path) -> None:
    # given a replica that is followed
    own_mesh.deploy("brief", {**SLOW, "engine_args": {}}).raise_for_status()
    [replica] = until("brief is ready", lambda: own_mesh.ready_replicas("brief"))
    out = tmp_path / "followed"
    with out.open("w") as file:
        following = subprocess.Popen(
            [sys.executable, "-m", "weft_cli", "logs", replica["id"], "--follow", "--tail", "5"],
            env={**os.environ, "WEFT_STATE": str(own_mesh.state)},
            stdout=file,
        )
    try:
        until("its log is shown", lambda: out.read_text())
        before = len(out.read_text())
        # when it is removed
        own_mesh.http.delete(f"{own_mesh.url}/api/models/brief").raise_for_status()
        # then the follower is told what its process says last
        until("more is shown", lambda: len(out.read_text()) > before)
    finally:
        following.send_signal(signal.SIGINT)
        following.wait(20)
    assert 130 == following.returncode


@pytest.mark.sabotage("blind-doctor")
def test_the_doctor_finds_what_is_wrong_and_says_what_to_do(own_mesh: MeshUnderTest) -> None:
    # given a mesh that is well
    well = own_mesh.weft("doctor", "--json")
    found = json.loads(well.stdout)
    assert [] == [each for each in found["findings"] if each["verdict"] == "problem"]
    assert (0, True) == (well.returncode, found["ok"])
    names = {each["name"] for each in found["findings"]}
    assert {"python", "disk", "lock", "nats", "postgres", "registry", "worker-1", "tiny", "slow"} <= names
    # when a process is held down
    own_mesh.weft("hold", "scheduler")
    own_mesh.kill("scheduler")
    until("it is held", lambda: own_mesh.part("scheduler")["state"] == "held")
    # then it is named with its remedy
    held = own_mesh.weft("doctor")
    assert "do: weft release scheduler" in held.stdout
    own_mesh.weft("release", "scheduler")
    until("it is back", lambda: own_mesh.part("scheduler")["state"] == "ready", 60)
    # and where nothing answers at all, the exit status says so
    gone = own_mesh.weft("doctor", "--url", "http://127.0.0.1:9")
    assert 1 == gone.returncode
    assert "nothing answers" in gone.stdout


@pytest.mark.sabotage("uncounted-tokens")
def test_a_bench_counts_tokens_and_names_errors(own_mesh: MeshUnderTest) -> None:
    ran = own_mesh.weft("bench", "slow", "--streams", "1,4", "--seconds", "2", "--tokens", "16", "--json")
    assert 0 == ran.returncode, ran.stderr
    one, four = json.loads(ran.stdout)["levels"]
    assert (1, 4) == (one["streams"], four["streams"])
    assert four["tokens"] > one["tokens"] > 0
    assert 0 == one["errors"] + four["errors"]
    assert one["first_token_ms_p50"] <= one["first_token_ms_p95"]
    unknown = own_mesh.weft("bench", "nobody", "--url", f"{own_mesh.url}/v1")
    assert 1 == unknown.returncode
    assert "tiny" in unknown.stderr


@pytest.mark.sabotage("mute-completion")
def test_completion_knows_models_and_replicas_of_the_running_mesh(own_mesh: MeshUnderTest) -> None:
    def offered(*words: str) -> list[str]:
        ran = subprocess.run(
            [sys.executable, "-m", "weft_cli"],
            env={
                **os.environ,
                "WEFT_STATE": str(own_mesh.state),
                "_WEFT_COMPLETE": "complete_bash",
                "COMP_WORDS": " ".join(["weft", *words]),
                "COMP_CWORD": str(len(words)),
            },
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return ran.stdout.split()

    assert ["slow"] == offered("bench", "sl")
    assert ["tiny"] == [each for each in offered("chat", "-m", "tin") if each == "tiny"]
    replica = own_mesh.ready_replicas()[0]["id"]
    assert [replica] == offered("logs", replica[:-2])
    assert "gateway" in offered("logs", "gat")

"""A user's own model: deployed by its path, watched, asked, replaced while requests run, removed."""

import threading
import time
from pathlib import Path

import httpx
import pytest
from weft_testing.story import MeshUnderTest, until

from . import own_gguf

QUESTION = "What is the capital of France?"


class Callers:
    """Clients that ask one question after another and note every answer."""

    def __init__(self, mesh: MeshUnderTest, model: str, count: int = 3) -> None:
        self.answers: list[str] = []
        self._mesh, self._model = mesh, model
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._ask, daemon=True) for _ in range(count)]

    def __enter__(self) -> "Callers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(60)

    def _ask(self) -> None:
        body = {"model": self._model, "temperature": 0, "messages": [{"role": "user", "content": QUESTION}]}
        with httpx.Client(timeout=60) as http:
            while not self._over.is_set():
                try:
                    said = http.post(f"{self._mesh.url}/v1/chat/completions", json=body)
                    text = said.json()["choices"][0]["message"]["content"] if said.is_success else said.text
                except httpx.HTTPError as error:
                    text = repr(error)
                self.answers.append(text)


@pytest.mark.slow
@pytest.mark.sabotage("retire-first")
def test_a_model_by_path_is_deployed_asked_replaced_under_load_and_removed(tmp_path: Path) -> None:
    file = own_gguf.write(tmp_path / "my own.gguf", capital="Lutet")
    # no request may be saved by waiting for the next revision: the one before must serve until that is ready
    with MeshUnderTest(tmp_path, WEFT_LOADING_WAIT_S="0.2") as mesh:
        # when it is tried out
        dry_run = mesh.weft("deploy", str(file), "--name", "own", "--dry-run")
        # then it says where it would go, and nothing has changed
        assert 0 == dry_run.returncode, dry_run.stderr
        assert "own (llama, " in dry_run.stdout
        assert "it would go to worker-1" in dry_run.stdout
        assert [] == [e for e in mesh.facts("model", "spec_accepted") if e["fact"]["name"] == "own"]

        # when it is deployed
        deployed = mesh.weft("deploy", str(file), "--name", "own")
        # then its progress is told, and it answers from this file
        assert 0 == deployed.returncode, deployed.stderr
        lines = [line.strip() for line in deployed.stdout.splitlines()]
        assert ("own is accepted as revision 1", "own answers from 1 replica") == (lines[0], lines[-1])
        assert "loading on worker-1" in lines
        assert set(lines[1:-1]) <= {"placing", "loading on worker-1"}
        assert ["own", "ready", "1", "llama.cpp", "1/1"] in [row[:5] for row in shown(mesh)]
        assert "The capital of France is Lutet.\n" == mesh.weft("chat", "-m", "own", QUESTION).stdout
        listed = mesh.http.get(f"{mesh.url}/v1/models/own").json()
        assert ("own", "model", "ready", None) == (
            listed["id"],
            listed["object"],
            listed["weft"]["state"],
            listed["weft"]["reason"],
        )
        # and the same again changes nothing
        assert 0 == mesh.weft("deploy", str(file), "--name", "own").returncode
        assert 1 == mesh.http.get(f"{mesh.url}/v1/models/own").json()["weft"]["revision"]

        # when another training lies at the same path and is deployed while requests run
        with Callers(mesh, "own") as callers:
            until("requests are answered", lambda: len(callers.answers) > 5)
            own_gguf.write(file, capital="Parys")
            again = mesh.weft("deploy", str(file), "--name", "own")
            assert 0 == again.returncode, again.stderr
            told = [line.strip() for line in again.stdout.splitlines()]
            assert ("own is accepted as revision 2", "own answers from 1 replica") == (told[0], told[-1])
            assert "loading on worker-1" in told
            until("the new revision answers", lambda: "Parys" in callers.answers[-1])
            time.sleep(1)  # whoever still comes to the old one by then comes too late
        # then each request was answered, by the one revision or the other, and by the new one in the end
        assert [] == [text for text in callers.answers if "Lutet" not in text and "Parys" not in text]
        assert "Parys" in callers.answers[-1]
        assert {"Lutet", "Parys"} == {"Lutet" if "Lutet" in text else "Parys" for text in callers.answers}
        until("one replica is left", lambda: 1 == len([r for r in mesh.replicas() if r["model_name"] == "own"]))
        assert ["own", "ready", "2", "llama.cpp", "1/1"] in [row[:5] for row in shown(mesh)]

        # when it is removed
        removed = mesh.weft("remove", "own")
        said = "own is removed; its replicas finish what they do and stop\n"
        assert (0, said, "") == (removed.returncode, removed.stdout, removed.stderr)
        # then it is gone, and the built-in one goes on
        assert "own" not in {row[0] for row in shown(mesh) if row}
        assert 404 == mesh.chat(QUESTION, "own").status_code
        until("its engine has ended", lambda: 1 == len(mesh.hosts()))
        assert "Paris" in mesh.ask()


def shown(mesh: MeshUnderTest) -> list[list[str]]:
    """The rows of `weft status`, five columns of each."""
    return [line.split()[:5] for line in mesh.weft("status").stdout.splitlines()]

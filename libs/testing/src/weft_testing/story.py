"""A whole embedded mesh for a story: the real launcher, real processes, real sockets.

Everything is seen and done from outside, as a user would: HTTP, the command line, signals to processes.
"""

import json
import os
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx
import psutil
from weft_servers import port

from weft_testing.decisions_again import decide_again
from weft_testing.mesh_processes import MeshProcesses

READY_S = 120.0
STOP_S = 90.0
T = TypeVar("T")


class NotInTime(AssertionError):
    """What a story waits for did not come."""


def until(what: str, look: Callable[[], T | None], timeout: float = 30.0) -> T:
    """The first value of `look` that is true. Errors of HTTP count as not there. Raises NotInTime."""
    deadline = time.monotonic() + timeout
    last: object = None
    while time.monotonic() < deadline:
        try:
            value = look()
        except (httpx.HTTPError, OSError, json.JSONDecodeError) as error:
            last = error
        else:
            if value:
                return value
            last = value
        time.sleep(0.1)
    raise NotInTime(f"{what}: not within {timeout:g} s (last seen: {last!r})")


class MeshUnderTest(MeshProcesses):
    """One embedded mesh on a state folder of its own."""

    command = "up"
    """The one that brings it up."""
    decides_again = True
    """Whether its log's decisions are computed again before it ends. Not where a story writes what no service would."""

    def __init__(
        self,
        folder: Path | None = None,
        *,
        workers: int = 1,
        inside: Callable[[Sequence[str]], list[str]] = list,
        **settings: str,
    ) -> None:
        """`inside` makes of a command line one that runs it where the mesh shall be, such as `Machine.argv`."""
        super().__init__(folder or Path(tempfile.mkdtemp(prefix="weft-story-")))
        self._inside = inside
        self.workers = workers
        self._settings = settings
        self._launcher: subprocess.Popen[bytes] | None = None
        self.url = ""
        self.http = httpx.Client(timeout=90.0)

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End it, and this object. What a launcher should have ended and did not is ended by force."""
        try:
            try:
                # a mesh off loopback hands its log to nobody without a key
                lives = self._launcher is not None and self._launcher.poll() is None
                if self.decides_again and lives and self.url.startswith("http://"):
                    decide_again(self.http, self.url)
            finally:
                self.down()
        finally:
            self.http.close()
            if self._held is not None:
                self._held.release()
            for left in self.processes():
                with suppress(psutil.NoSuchProcess):
                    left.kill()

    def up(self, *options: str) -> None:
        """Start it and wait until it serves. Raises NotInTime with what the launcher said."""
        output = self.folder / "launcher.out"
        lifeline, self._lifeline = os.pipe()
        with output.open("ab") as log:
            self._launcher = subprocess.Popen(
                self._inside(
                    [
                        *_WEFT,
                        self.command,
                        "--state",
                        str(self.state),
                        "--port",
                        self._port(),
                        *self._worker_option(),
                        *options,
                    ]
                ),
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=self.environment() | {"WEFT_LIFELINE_FD": str(lifeline)},
                pass_fds=(lifeline,),
                start_new_session=True,
            )
        os.close(lifeline)

        def serves() -> bool:
            said = output.read_text()
            if self._launcher is None or self._launcher.poll() is not None:
                last = " / ".join(said.splitlines()[-8:])  # on the one line that a summary shows
                raise NotInTime(f"the launcher ended: {last}\n{said[-4000:]}")
            return "Weft serves at" in said[self._said :]

        try:
            until("the mesh serves", serves, READY_S)
        except NotInTime as error:
            raise NotInTime(f"{error}\n{output.read_text()[-4000:]}\n{self.logs()}") from None
        self._said = len(output.read_text())
        self.url = str(self.run_file()["url"])
        if self.url.startswith("https://") and not self._trusting:
            self._trusting = True
            self.http.close()
            authority = str(self.state / "trust" / "authority.pem")
            self.http = httpx.Client(timeout=90.0, verify=ssl.create_default_context(cafile=authority))

    _trusting = False
    """Whether `http` trusts the mesh's own authority, and it alone."""
    _said = 0
    _held: port.HeldPort | None = None
    """The gateway's, so that no other mesh is given it before this one listens."""
    _lifeline = -1
    """Closes when this process dies: the launcher then ends the mesh."""

    def down(self) -> None:
        """End it in order, by force if that takes too long."""
        if self._launcher is None:
            return
        if self._launcher.poll() is None:
            self._launcher.send_signal(signal.SIGTERM)
            try:
                self._launcher.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._launcher.kill()
                self._launcher.wait(10)
                raise NotInTime(f"the launcher did not stop within {STOP_S:g} s\n{self.logs()}") from None
        self._let_go()

    def kill_launcher(self) -> None:
        """`kill -9` of the launcher."""
        assert self._launcher is not None
        self._launcher.kill()
        self._launcher.wait(10)
        self._let_go()

    def _let_go(self) -> None:
        self._launcher = None
        os.close(self._lifeline)

    def pid(self, name: str) -> int:
        """The process of a part. Raises NotInTime while it has none."""
        return until(f"{name} has a process", lambda: self.part(name)["pid"])

    def kill(self, name: str) -> int:
        """`kill -9` of a part's process; returns its pid."""
        pid = self.pid(name)
        os.kill(pid, signal.SIGKILL)
        return pid

    def status(self) -> dict[str, Any]:
        """`GET /api/status`."""
        return self._get("/api/status")

    def replicas(self) -> list[dict[str, Any]]:
        return self.status()["replicas"]

    def ready_replicas(self, model: str = "tiny") -> list[dict[str, Any]]:
        return [r for r in self.replicas() if r["model_name"] == model and r["state"] == "ready"]

    def events(self, after: int = 0) -> list[dict[str, Any]]:
        """Every commit of the log behind a sequence, through the gateway's pages."""
        return list(self._pages(after))

    def facts(self, kind: str, type_: str, after: int = 0) -> list[dict[str, Any]]:
        """Commits of a kind that hold a fact of a type, each with that fact under `fact`."""
        return [
            {**event, "fact": fact}
            for event in self.events(after)
            if event["kind"] == kind
            for fact in event["facts"]
            if fact["type"] == type_
        ]

    def ask(self, question: str = "What is the capital of France?", model: str = "tiny", **fields: Any) -> str:
        """The answer to one question. Raises httpx.HTTPStatusError where it is refused."""
        response = self.chat(question, model, **fields)
        response.raise_for_status()
        return response.json()["choices"][0]["message"]["content"]

    def chat(
        self, question: str, model: str = "tiny", *, headers: Mapping[str, str] | None = None, **fields: Any
    ) -> httpx.Response:
        """One chat request, greedy unless told otherwise."""
        body = {"model": model, "temperature": 0, "messages": [{"role": "user", "content": question}], **fields}
        return self.http.post(f"{self.url}/v1/chat/completions", json=body, headers=headers)

    def weft(self, *words: str, typed: str = "", timeout: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Run the command line against this mesh; `typed` stands in its stdin.

        Raises NotInTime where it doesn't end within `timeout` seconds.
        """
        try:
            return subprocess.run(
                self._inside([*_WEFT, *words]),
                env={**self.environment(), "WEFT_STATE": str(self.state)},
                capture_output=True,
                text=True,
                check=False,
                timeout=timeout,
                input=typed,
            )
        except subprocess.TimeoutExpired:
            raise NotInTime(f"weft {' '.join(words)} still runs after {timeout:g} s") from None

    def deploy(self, name: str, spec: Mapping[str, Any], **headers: str) -> httpx.Response:
        """`POST /api/models`."""
        return self.http.post(f"{self.url}/api/models", json={"name": name, "spec": dict(spec)}, headers=headers)

    def logs(self) -> str:
        """The last lines of every log, for a failed story."""
        texts: list[str] = []
        for path in sorted((self.state / "logs").glob("*.log")):
            texts.append(f"--- {path.name}\n" + "\n".join(path.read_text(errors="replace").splitlines()[-8:]))
        return "\n".join(texts)

    def _get(self, path: str) -> dict[str, Any]:
        response = self.http.get(f"{self.url}{path}")
        response.raise_for_status()
        return response.json()

    def _pages(self, after: int) -> Iterator[dict[str, Any]]:
        place: int | None = after
        while place is not None:
            page = self._get(f"/api/events?after={place}&limit=1000")
            yield from page["items"]
            place = page["next"]

    def _worker_option(self) -> list[str]:
        return ["--workers", str(self.workers)]

    def _port(self) -> str:
        ports = self.state / "ports.json"
        if ports.exists():
            return str(json.loads(ports.read_text())["gateway"])
        if self._held is None:
            [self._held] = port.take()
        return str(self._held.number)

    def environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("WEFT_")}
        return kept | self._settings


_WEFT = (sys.executable, "-m", "weft_cli")

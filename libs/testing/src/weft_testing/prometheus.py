"""A real Prometheus on loopback, with configuration and rules as they are shipped: names and times alone differ."""

import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self, cast

import httpx
from weft_servers import port

READY_S = 60.0
STOP_S = 20.0


class Prometheus:
    """A context manager. `query` and `query_range` are its API's."""

    def __init__(self, folder: Path, shipped: Path, instead: Mapping[str, str]) -> None:
        """`shipped` has `prometheus.yml` and `rules/`; `instead`: what stands in the file for what, each at least once.

        Raises AssertionError where Prometheus isn't installed, or a text is not in the file.
        """
        found = shutil.which("prometheus")
        assert found, "prometheus is not here: install Debian's package `prometheus`"
        text = (shipped / "prometheus.yml").read_text()
        for before, after in instead.items():
            assert before in text, f"{shipped / 'prometheus.yml'} has no {before!r}"
            text = text.replace(before, after)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "prometheus.yml").write_text(text)
        shutil.copytree(shipped / "rules", folder / "rules", dirs_exist_ok=True)
        self._folder = folder
        self._command = found
        self._process: subprocess.Popen[bytes] | None = None
        self._http = httpx.Client(timeout=30.0)
        self.url = ""

    def __enter__(self) -> Self:
        [held] = port.take()
        self.url = f"http://127.0.0.1:{held.number}"
        held.release()
        with (self._folder / "prometheus.log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    self._command,
                    f"--config.file={self._folder / 'prometheus.yml'}",
                    f"--storage.tsdb.path={self._folder / 'data'}",
                    f"--web.listen-address=127.0.0.1:{held.number}",
                ],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )
        until = time.monotonic() + READY_S
        while not self._ready():
            assert self._process.poll() is None, (self._folder / "prometheus.log").read_text()[-2000:]
            assert time.monotonic() < until, "prometheus did not get ready"
            time.sleep(0.1)
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(STOP_S)

    def query(self, expr: str) -> list[dict[str, Any]]:
        """The samples of an expression now: `metric` and `value`. Raises AssertionError where it is refused."""
        found = self.ask("query", query=expr)
        if found["resultType"] == "scalar":
            return [{"metric": {}, "value": found["result"]}]
        return cast("list[dict[str, Any]]", found["result"])

    def query_range(self, expr: str, seconds: float, step: float) -> list[dict[str, Any]]:
        """The same over the last seconds: `metric` and `values`."""
        now = time.time()
        found = self.ask("query_range", query=expr, start=now - seconds, end=now, step=step)
        return cast("list[dict[str, Any]]", found["result"])

    def ask(self, what: str, **parameters: Any) -> Any:
        """`data` of an answer of its API. Raises AssertionError where it is refused."""
        answer = self._http.get(f"{self.url}/api/v1/{what}", params=parameters)
        body = answer.json()
        assert body["status"] == "success", f"{parameters}: {body.get('error')}"
        return body["data"]

    def _ready(self) -> bool:
        try:
            return self._http.get(f"{self.url}/-/ready").status_code == 200
        except httpx.TransportError:
            return False

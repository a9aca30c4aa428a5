"""A whole mesh that speaks TLS and wants keys, asked without a pause, and a Prometheus that scrapes all of it."""

import json
import ssl
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from weft_testing.prometheus import Prometheus
from weft_testing.story import MeshUnderTest, until

ROOT = Path(__file__).parents[4]
SHIPPED = ROOT / "deploy" / "observability"
SIMULATED = {"source": {"kind": "simulated"}, "engine": "simulated", "engine_args": {"ms_per_token": 5}}
SERVICES = ("registry", "scheduler", "reconciler", "metadata-cache")
_SCRAPES = 25
"""That all targets must have had before anything is looked at: rates are of a minute, one each second."""
_BOUND_S = 120.0


class SeenMesh:
    """What is asked, by which clients, and what Prometheus made of it."""

    def __init__(self, mesh: MeshUnderTest, key: str) -> None:
        self.mesh = mesh
        self.key = key
        self._authority = mesh.state / "trust" / "authority.pem"
        self._stopping = threading.Event()
        self._clients = [threading.Thread(target=self._ask, args=(model,), daemon=True) for model in self._models()]

    def prepare(self) -> None:
        """A second model, an alias of both, and clients that ask them all."""
        made = self.mesh.deploy("paced", SIMULATED)
        assert made.status_code in (200, 201, 202), made.text
        targets = [{"model": "tiny", "weight": 50}, {"model": "paced", "weight": 50}]
        body = {"rule": "weights", "targets": targets}
        assert self.mesh.http.put(f"{self.mesh.url}/api/aliases/chat", json=body).status_code == 200
        until("both models answer", lambda: self.mesh.ready_replicas("paced") and self._answers(), _BOUND_S)
        for client in self._clients:
            client.start()

    def stop(self) -> None:
        """Ask no more."""
        self._stopping.set()
        for client in self._clients:
            client.join(30)

    def scrape(self, folder: Path) -> Prometheus:
        """A Prometheus as it is shipped, but for where the parts are, and for how often it looks."""
        keys = folder / "keys"
        keys.mkdir()
        (keys / "authority.pem").write_bytes(self._authority.read_bytes())
        (keys / "metrics-key").write_text(self.key)
        ports = json.loads((self.mesh.state / "ports.json").read_text())
        instead = {
            "gateway:8080": self.mesh.url.removeprefix("https://"),
            **{f"{name}:9100": f"127.0.0.1:{ports[name]}" for name in SERVICES},
            "/run/weft": str(keys),
            "scrape_interval: 15s": "scrape_interval: 1s",
            "evaluation_interval: 15s": "evaluation_interval: 1s",
            "refresh_interval: 30s": "refresh_interval: 1s",
        }
        return Prometheus(folder / "prometheus", SHIPPED / "prometheus", instead)

    def _models(self) -> Iterator[str]:
        yield from ("tiny", "tiny", "paced", "paced", "chat", "nothing-of-this-name")

    def _answers(self) -> bool:
        return self.mesh.chat("What is the capital of France?").status_code == 200

    def _ask(self, model: str) -> None:
        """Ask for ever; a model that isn't there too, so that refusals are seen, and who asks `chat` leaves early."""
        trusted = ssl.create_default_context(cafile=self._authority)
        asked = [{"role": "user", "content": "What is the capital of France?"}]
        body = {"model": model, "stream": True, "max_tokens": 64, "messages": asked}
        with httpx.Client(timeout=60.0, verify=trusted, headers=self.mesh.http.headers) as client:
            while not self._stopping.is_set():
                with client.stream("POST", f"{self.mesh.url}/v1/chat/completions", json=body) as answer:
                    for _ in answer.iter_bytes():
                        if model == "chat":
                            break
                time.sleep(0.1)


@contextmanager
def seen_mesh(folder: Path) -> Generator[tuple[SeenMesh, Prometheus]]:
    """A mesh of one worker under load, and a Prometheus that has scraped all its targets for half a minute."""
    with MeshUnderTest(folder, WEFT_TLS="always", WEFT_REQUIRE_KEYS="1") as mesh:
        mesh.http.headers["authorization"] = f"Bearer {(mesh.state / 'admin-key').read_text().strip()}"
        made = mesh.http.post(f"{mesh.url}/api/keys", json={"scopes": ["read"]})
        assert made.status_code in (200, 201), made.text
        seen = SeenMesh(mesh, made.json()["secret"])
        try:
            seen.prepare()
            with seen.scrape(folder) as prometheus:
                until("all targets were scraped often", lambda: _often(prometheus), _BOUND_S)
                yield seen, prometheus
        finally:
            seen.stop()


def _often(prometheus: Prometheus) -> list[dict[str, Any]]:
    """The targets, once each of the shipped jobs has had enough scrapes that were answered."""
    jobs = [each["labels"]["job"] for each in prometheus.ask("targets")["activeTargets"]]
    if len(jobs) < len(SERVICES) + 2:
        return []
    counts = prometheus.query(f"count_over_time((up == 1)[2m:1s]) >= {_SCRAPES}")
    return counts if len(counts) == len(jobs) else []

"""A mesh of which each process is started by itself (`founded_processes`): keys by `weft found`, TLS, an API key for
everybody, two gateways. What it says, and what goes from one release to the next.
"""

import json
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import httpx

from weft_testing.founded_processes import MODULES, FoundedProcesses, before_own
from weft_testing.story import until

ORDER = tuple(MODULES)
"""In which all go to the next release; back again it is the same from its end. Who answers goes before who asks: a
gateway of the next release may ask what an earlier registry doesn't know. And services go before workers: they know the
engines' profiles of earlier workers, and not those of later ones."""
READY_S = 90.0


class FoundedMesh(FoundedProcesses):
    """One mesh, below one folder. Ends all of it when it is closed, or when this process dies."""

    def __init__(
        self,
        folder: Path,
        *,
        gateways: int = 2,
        workers: int = 2,
        nats: int = 1,
        twice: Sequence[str] = (),
        settings: Mapping[str, str] = {},
    ) -> None:
        """See FoundedProcesses."""
        super().__init__(folder, gateways=gateways, workers=workers, nats=nats, twice=twice, settings=settings)
        self.http = httpx.Client()

    def __enter__(self) -> Self:
        try:
            self.found()
            self.start_servers()
            for part in self.parts:
                self.start(part)
            for part in self.parts:
                self.ready(part)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all that runs."""
        super().close()
        self.http.close()

    def found(self, tree: Path | None = None) -> None:
        """Its keys, by the command that operators give; again: new credentials and certificates for the same keys, with
        which the services of `tree` may say all that they say."""
        members = [f"--nats={name}=127.0.0.1:{':'.join(map(str, ports))}" for name, ports in self.places.items()]
        host = f"127.0.0.1:{self._postgres_port}"
        self.weft(
            "found", str(self.keys), "--gateway=127.0.0.1", *members, f"--postgres={host}", "--nodes=8", tree=tree
        )
        for name in self.servers:
            conf = self.keys / "nats" / name / "nats.conf"
            text = conf.read_text().replace("/run/weft", str(conf.parent))
            conf.write_text(text.replace("/var/lib/weft/nats", str(self.store(name))).replace("0.0.0.0", "127.0.0.1"))
        self.http.close()
        trusted = ssl.create_default_context(cafile=self.authority)
        self.http = httpx.Client(verify=trusted, timeout=90, headers={"Authorization": f"Bearer {self.admin_key}"})

    def ready(self, part: str, timeout: float = READY_S) -> None:
        """Wait until a part says that it is ready. Raises NotInTime, AssertionError with its log where it ended."""

        def look() -> bool:
            status = self._processes[part].poll()
            assert status is None, f"{part} ended with {status}: {self.log(part).read_text()[-3000:]}"
            if part in self.workers:  # its certificate names its node, which no client but a gateway asks for
                return self.node(part).get("state") == "healthy"
            return self.says(part, "/readyz")[0] == 200

        until(f"{part} is ready", look, timeout)

    def says(self, part: str, path: str) -> tuple[int, str]:
        """What a service's own HTTP server answers; 0: nothing."""
        secure = part in self.gateways
        try:
            said = self.http.get(f"{'https' if secure else 'http'}://127.0.0.1:{self.ports[part]}{path}", timeout=10)
        except httpx.HTTPError:
            return 0, ""
        return said.status_code, said.text

    def replace(self, part: str, tree: Path | None = None) -> None:
        """End it, and start it anew from another tree: what `compose up` does with a service whose image changed."""
        self.stop(part)
        self.start(part, tree)
        self.ready(part)

    def agent_anew(self, worker: str, tree: Path | None = None) -> None:
        """Start a worker's agent anew from another tree; its engines run on. What is done after an install in place."""
        before = self._agent(worker)
        self._installed(worker, tree)
        os.kill(self.pid(worker), signal.SIGUSR1)
        until(f"{worker} has another agent", lambda: self._agent(worker) not in (None, before))

    def weft(
        self, *words: str, check: bool = True, timeout: float = 90, tree: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """A command of an admin, at the first gateway that there is."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")}
        if tree is not None:
            env["PYTHONPATH"] = before_own(tree)
        if (self.keys / "admin-key").exists():
            env |= {"WEFT_URL": self.url(), "WEFT_API_KEY": self.admin_key, "SSL_CERT_FILE": str(self.authority)}
        done = subprocess.run(
            [sys.executable, "-m", "weft_cli", *words],
            env=env | {"WEFT_STATE": str(self.folder / "nobody")} if words[0] != "found" else env,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
        )
        assert not check or 0 == done.returncode, f"{words}: {done.stdout}{done.stderr}"
        return done

    def status(self, gateway: str = "gateway-1") -> dict[str, Any]:
        return self._get("/api/status", gateway)

    def node(self, name: str) -> dict[str, Any]:
        """A node as the gateways see it; empty: there is none of this name."""
        for gateway in self.gateways:
            with suppress(httpx.HTTPError):
                return {each["name"]: each for each in self.status(gateway)["nodes"]}.get(name, {})
        return {}

    def ready_replicas(self, model: str, gateway: str = "gateway-1") -> list[dict[str, Any]]:
        found = self.status(gateway)["replicas"]
        return [each for each in found if each["model_name"] == model and each["state"] == "ready"]

    def events(self, gateway: str = "gateway-1") -> list[dict[str, Any]]:
        """Every commit of the log."""
        found: list[dict[str, Any]] = []
        place: int | None = 0
        while place is not None:
            page = self._get(f"/api/events?after={place}&limit=1000", gateway)
            found += page["items"]
            place = page["next"]
        return found

    def ask(self, question: str, model: str, gateway: str = "gateway-1", **fields: Any) -> str:
        """The answer to one question. Raises httpx.HTTPStatusError where it is refused."""
        body = {"model": model, "temperature": 0, "messages": [{"role": "user", "content": question}], **fields}
        said = self.http.post(f"{self.url(gateway)}/v1/chat/completions", json=body)
        said.raise_for_status()
        return str(said.json()["choices"][0]["message"]["content"])

    def deploy(self, name: str, spec: Mapping[str, Any], gateway: str = "gateway-1") -> httpx.Response:
        return self.http.post(f"{self.url(gateway)}/api/models", json={"name": name, "spec": dict(spec)})

    def _get(self, path: str, gateway: str) -> dict[str, Any]:
        said = self.http.get(f"{self.url(gateway)}{path}")
        said.raise_for_status()
        return json.loads(said.text)

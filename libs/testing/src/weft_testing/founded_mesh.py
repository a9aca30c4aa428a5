"""A mesh of which each process is started by itself, as compose and Kubernetes do: keys by `weft found`, TLS, an API
key for everybody, two gateways. Any of its processes can be ended and started again, from this tree or another one.
"""

import json
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self

import httpx
import psutil
from weft_servers import nats_server, port, postgres_server, supervised
from weft_servers.supervised import SupervisedProcess

from weft_testing.story import until

MODULES = {
    "registry": "weft_registry",
    "scheduler": "weft_scheduler",
    "reconciler": "weft_reconciler",
    "metadata-cache": "weft_metadata_cache",
    "gateway": "weft_gateway",
    "worker": "weft_worker_agent",
}
"""By service; a part is called by it, or by it and a number: `gateway-2`."""
ORDER = tuple(MODULES)
"""In which all go to the next release; back again it is the same from its end. Who answers goes before who asks: a
gateway of the next release may ask what an earlier registry doesn't know. And services go before workers: they know the
engines' profiles of earlier workers, and not those of later ones."""
ENDS_S = 90.0
READY_S = 90.0


class FoundedMesh:
    """The processes of one mesh, below one folder. Ends all of them when it is closed, or when this process dies."""

    def __init__(
        self, folder: Path, *, gateways: int = 2, workers: int = 2, nats: int = 1, settings: Mapping[str, str] = {}
    ) -> None:
        """`nats`: how many servers the log has. `settings`: for every part."""
        self.folder, self.settings = folder, dict(settings)
        self.keys = folder / "keys"
        self._stack = ExitStack()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        services = [name for name in MODULES if name not in ("gateway", "worker")]
        self.gateways = [f"gateway-{number + 1}" for number in range(gateways)]
        self.workers = [f"worker-{number + 1}" for number in range(workers)]
        self.servers = [f"n{number + 1}" for number in range(nats)]
        self.parts = [*services, *self.gateways, *self.workers]
        free = iter(port.choose(3 * nats + 1 + len(self.parts)))
        self.places = {name: (next(free), next(free), next(free)) for name in self.servers}
        """Of each NATS server: the ports of clients, routes and monitoring."""
        self._postgres_port = next(free)
        self.ports = {name: next(free) for name in self.parts}
        self.nats: dict[str, SupervisedProcess] = {}
        self.postgres: postgres_server.PostgresServer | None = None
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
        for part in [*self.workers, *self.gateways, *self.parts]:
            if (process := self._processes.get(part)) is not None and process.poll() is None:
                process.kill() if part in self.workers else process.terminate()
        for process in self._processes.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(30)
            if process.poll() is None:
                process.kill()
        self.stop_servers()
        self.http.close()
        self._stack.close()

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

    @property
    def authority(self) -> Path:
        """What clients trust."""
        return self.keys / "services/gateway/authority.pem"

    @property
    def admin_key(self) -> str:
        return (self.keys / "admin-key").read_text().strip()

    def store(self, server: str) -> Path:
        """Where a NATS server keeps the log."""
        return self.folder / "nats" / server

    def start_servers(self) -> None:
        for name in self.servers:
            self.start_server(name)
        self.start_postgres()

    def start_server(self, name: str) -> None:
        """A NATS server on what it left behind."""
        self.store(name).mkdir(parents=True, exist_ok=True)
        conf = self.keys / "nats" / name / "nats.conf"
        log = self.folder / f"{name}.out"
        self.nats[name] = supervised.launch([str(nats_server.find_binary()), "-c", str(conf)], log=log)

    def start_postgres(self) -> None:
        """The lists' database, on what it left behind."""
        folder = self.folder / "postgres"
        self.postgres = postgres_server.start(folder, tcp=True, tcp_port=self._postgres_port)

    def stop_servers(self) -> None:
        for server in self.nats.values():
            server.stop()
        if self.postgres is not None:
            self.postgres.stop()

    def url(self, gateway: str = "gateway-1") -> str:
        return f"https://127.0.0.1:{self.ports[gateway]}"

    def start(self, part: str, tree: Path | None = None, **settings: str) -> None:
        """Start a part's process; `tree`: a folder of packages that go before this tree's own."""
        lifeline, kept = os.pipe()
        self._stack.callback(os.close, kept)
        env = self._environment(part) | settings | {"WEFT_LIFELINE_FD": str(lifeline)}
        env["PYTHONPATH"] = str(self._installed(part, tree))
        with self.log(part).open("ab") as out:
            self._processes[part] = subprocess.Popen(
                [sys.executable, "-m", MODULES[self._service(part)]],
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                pass_fds=(lifeline,),
                start_new_session=True,
            )
        os.close(lifeline)

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

    def stop(self, part: str) -> int:
        """End a part's process in order, as compose and Kubernetes do; its exit status."""
        process = self._processes[part]
        process.terminate()
        return process.wait(ENDS_S)

    def kill(self, part: str) -> None:
        """`kill -9`."""
        self._processes[part].kill()
        self._processes[part].wait(10)

    def ended(self, part: str) -> bool:
        """Whether its process has ended by itself."""
        return self._processes[part].poll() is not None

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

    def hosts(self, worker: str) -> set[int]:
        """The processes of a worker's engines."""
        return self._children(worker, "weft_engine")

    def pid(self, part: str) -> int:
        return self._processes[part].pid

    def log(self, part: str) -> Path:
        return self.folder / f"{part}.log"

    def weft(
        self, *words: str, check: bool = True, timeout: float = 90, tree: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """A command of an admin, at the first gateway that there is."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")}
        if tree is not None:
            env["PYTHONPATH"] = str(tree)
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

    def _installed(self, part: str, tree: Path | None) -> Path:
        """Where a part finds what goes before this tree's packages; the same path whatever lies there."""
        path = self.folder / "installed" / part
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        path.symlink_to(tree or path.parent)
        return path

    def _database_url(self) -> Path:
        """A file with it, as containers are given secrets."""
        assert self.postgres is not None
        file = self.folder / "postgres-url"
        file.write_text(str(self.postgres.tcp_url))
        return file

    def _agent(self, worker: str) -> int | None:
        return next(iter(self._children(worker, "--agent")), None)

    def _children(self, worker: str, word: str) -> set[int]:
        """The living children of a worker's supervisor whose command has a word."""
        found: set[int] = set()
        with suppress(psutil.NoSuchProcess):
            for each in psutil.Process(self.pid(worker)).children():
                with suppress(psutil.NoSuchProcess):  # a zombie is one too
                    if any(word in argument for argument in each.cmdline()):
                        found.add(each.pid)
        return found

    def _service(self, part: str) -> str:
        return part if part in MODULES else part.rpartition("-")[0]

    def _environment(self, part: str) -> dict[str, str]:
        service = self._service(part)
        state = self.folder / "state" / part
        state.mkdir(parents=True, exist_ok=True)
        env = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")} | self.settings
        env |= {"WEFT_STATE": str(state), "WEFT_HTTP_HOST": "127.0.0.1", "WEFT_HTTP_PORT": str(self.ports[part])}
        env["WEFT_LOG_FORMAT"] = "json"
        if service == "worker":
            number = self.workers.index(part)
            gateway = self.gateways[number % len(self.gateways)]
            token = str(self.keys / "join-token")
            share = f"1/{len(self.workers)}"
            return env | {
                "WEFT_GATEWAY_URL": self.url(gateway),
                "WEFT_JOIN_TOKEN_FILE": token,
                "WEFT_NODE_NAME": part,
                "WEFT_SHARE": share,
            }
        own = self.keys / "services" / service
        env |= {
            "WEFT_NATS_URL": ",".join(f"tls://127.0.0.1:{client}" for client, _, _ in self.places.values()),
            "WEFT_NATS_CREDENTIALS": str(own / "nats.creds"),
            "WEFT_TLS_FOLDER": str(own),
        }
        if service in ("registry", "gateway"):
            env |= dict(line.split("=", 1) for line in (self.keys / "mesh.env").read_text().splitlines())
        if service == "registry":
            env["WEFT_TRUST"] = str(self.keys / "trust")
        if service == "gateway":
            env |= {"WEFT_REQUIRE_KEYS": "true", "WEFT_POSTGRES_URL_FILE": str(self._database_url())}
        return env

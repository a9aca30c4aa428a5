"""The processes of a mesh of which each is started by itself, as compose and Kubernetes do: below one folder, with the
keys, ports and settings that each is given. Any of them can be ended and started again, from this tree or another one.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil
from weft_servers import nats_server, port, postgres_server, supervised
from weft_servers.supervised import SupervisedProcess

MODULES = {
    "registry": "weft_registry",
    "scheduler": "weft_scheduler",
    "reconciler": "weft_reconciler",
    "metadata-cache": "weft_metadata_cache",
    "gateway": "weft_gateway",
    "worker": "weft_worker_agent",
}
"""By service; a part is called by it, or by it and a number: `gateway-2`."""
ENDS_S = 90.0


class FoundedProcesses:
    """The processes of one mesh. All of them end when this process dies."""

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
        """`nats`: how many servers the log has. `twice`: services of which there are two, the second called `<name>-2`.
        `settings`: for every part."""
        self.folder, self.settings = folder, dict(settings)
        self.keys = folder / "keys"
        self._stack = ExitStack()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        services = [name for name in MODULES if name not in ("gateway", "worker")]
        self.gateways = [f"gateway-{number + 1}" for number in range(gateways)]
        self.workers = [f"worker-{number + 1}" for number in range(workers)]
        self.servers = [f"n{number + 1}" for number in range(nats)]
        services += [f"{name}-2" for name in twice]
        self.parts = [*services, *self.gateways, *self.workers]
        free = iter(port.choose(3 * nats + 1 + len(self.parts)))
        self.places = {name: (next(free), next(free), next(free)) for name in self.servers}
        """Of each NATS server: the ports of clients, routes and monitoring."""
        self._postgres_port = next(free)
        self.ports = {name: next(free) for name in self.parts}
        self.nats: dict[str, SupervisedProcess] = {}
        self.postgres: postgres_server.PostgresServer | None = None

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
        self._stack.close()

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
        env["PYTHONPATH"] = before_own(self._installed(part, tree))
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

    def hosts(self, worker: str) -> set[int]:
        """The processes of a worker's engines."""
        return self._children(worker, "weft_engine")

    def pid(self, part: str) -> int:
        return self._processes[part].pid

    def log(self, part: str) -> Path:
        return self.folder / f"{part}.log"

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


def before_own(tree: Path) -> str:
    """A tree's packages before those of this process: what a sabotage changed lies there."""
    return os.pathsep.join(filter(None, (str(tree), os.environ.get("PYTHONPATH"))))

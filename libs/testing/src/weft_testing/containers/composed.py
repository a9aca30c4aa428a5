"""A mesh that podman-compose runs, as the README of deploy/compose says, with stand-ins for the servers' images."""

import contextlib
import ssl
import subprocess
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from weft_testing.containers.podman import Podman, eventually

PARIS = "What is the capital of France?"
SERVICES = ("registry", "scheduler", "reconciler", "metadata-cache", "gateway")
WORKERS = ("worker-1", "worker-2")
STARTED = ("nats", "postgres", *SERVICES, *WORKERS, "first-model")
"""podman-compose 1.0.3 knows no profiles, so what is to be started is named."""
GRACE_S = 90
"""`stop_grace_period` of a worker, which podman-compose 1.0.3 doesn't pass on."""


@dataclass(frozen=True)
class Composed:
    """One project: its containers, network and volumes bear its name."""

    podman: Podman
    files: tuple[Path, ...]
    """Each laid over those before it."""
    project: str
    port: int
    env: dict[str, str]
    """What a user would have in `.env`."""
    started: tuple[str, ...] = STARTED
    """Besides `found`."""

    def compose(self, *argv: str, bound_s: float = 300.0) -> subprocess.CompletedProcess[str]:
        """What podman-compose says, and what it runs in front of it."""
        files = [part for each in self.files for part in ("-f", str(each))]
        return self.podman.call(["podman-compose", "-p", self.project, *files, *argv], env=self.env, bound_s=bound_s)

    def container(self, service: str) -> str:
        """Its container's name."""
        return f"{self.project}_{service}_1"

    def up(self) -> None:
        """As the README says it for this podman-compose: keys first, which later ones wait for."""
        self.compose("up", "-d", "--no-build", "found")
        self.ended("found")
        self.compose("up", "-d", "--no-build", *self.started)

    def ended(self, service: str) -> None:
        """Wait for one that ends by itself. Raises AssertionError with what it said where it failed."""
        assert self.podman.run("wait", self.container(service)).strip() == "0", self.logs(service)

    def down(self) -> None:
        """Containers and network go, volumes stay."""
        self.compose("down", "-t", str(GRACE_S))

    def weft(self, *argv: str) -> str:
        """What a command of Weft's says, in a container of its own; podman-compose speaks before and behind it."""
        said = self.compose("run", "--rm", "-T", "--no-deps", "weft", *argv).stdout
        _, began, rest = said.partition("\npodman run ")
        assert began, said
        assert "exit code: 0\n" in rest, said
        return rest.partition("\n")[2].rpartition("exit code: 0\n")[0]

    def logs(self, service: str) -> str:
        """What a container has said."""
        done = self.podman.call(["podman", "logs", self.container(service)], check=False)
        return done.stdout + done.stderr

    def in_tmp(self, service: str, file: str) -> bytes:
        """A file of a running container's /tmp, as root reads it; empty where there is none yet."""
        pid = self.podman.inspected(self.container(service))["State"]["Pid"]
        path = Path(f"/proc/{pid}/root/tmp") / file
        return path.read_bytes() if path.exists() else b""

    def in_volume(self, volume: str, file: str) -> str:
        """A file of a volume, as root reads it."""
        mounted = self.podman.run(
            "volume", "inspect", "--format", "{{.Mountpoint}}", f"{self.project}_{volume}"
        ).strip()
        return (Path(mounted) / file).read_text().strip()

    @contextlib.contextmanager
    def client(self) -> Generator[httpx.Client]:
        """A client with the first admin's key, that believes the mesh's authority alone."""
        trusted = ssl.create_default_context(cadata=self.in_volume("keys-admin", "authority.pem"))
        headers = {"Authorization": f"Bearer {self.in_volume('keys-admin', 'admin-key')}"}
        with httpx.Client(
            base_url=f"https://127.0.0.1:{self.port}", verify=trusted, headers=headers, timeout=60, trust_env=False
        ) as client:
            yield client

    def answers(self, model: str = "tiny", bound_s: float = 120.0) -> str:
        """The model's answer, once it comes."""

        def answer() -> str | None:
            with contextlib.suppress(httpx.HTTPError), self.client() as client:
                said = client.post("/v1/chat/completions", json=question(model))
                if said.is_success:
                    return said.json()["choices"][0]["message"]["content"]
            return None

        return eventually(f"{model} answers", answer, bound_s)

    def ready(self, model: str = "tiny") -> dict[str, str]:
        """On which nodes a replica of the model is ready, and in which incarnation."""
        with self.client() as client:
            replicas = client.get("/api/status").raise_for_status().json()["replicas"]
        ours = [each for each in replicas if (each["model_name"], each["state"]) == (model, "ready")]
        return {each["node_name"]: each["incarnation"] for each in ours}

    def health(self, service: str) -> int:
        """Status of the container's own health check, asked now."""
        return self.podman.call(["podman", "healthcheck", "run", self.container(service)], check=False).returncode

    def remove(self) -> None:
        """All that bears the project's name, whatever state it is in."""
        label = f"label=io.podman.compose.project={self.project}"
        for kind, listed, removed in (
            ("container", ["ps", "-aq"], ["rm", "-f", "-t", "5"]),
            ("volume", ["volume", "ls", "-q"], ["volume", "rm", "-f"]),
            ("network", ["network", "ls", "-q"], ["network", "rm", "-f"]),
        ):
            names = self.podman.run(*listed, "--filter", label, check=False).split()
            if names:
                done = self.podman.call(["podman", *removed, *names], check=False)
                assert done.returncode == 0, f"{kind}s stay: {done.stderr}"


def question(model: str, **more: Any) -> dict[str, Any]:
    """The body of a chat whose answer is known."""
    return {"model": model, "messages": [{"role": "user", "content": PARIS}], **more}

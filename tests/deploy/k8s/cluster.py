"""Pods of the dev overlay that run as containers, side by side on a network of their own."""

import json
import ssl
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import httpx
import yaml
from weft_testing.containers.podman import Podman

from . import founded
from .played import gone, played
from .rendered import Object, Workload, of_kind, render, workload

PARTS = ("nats", "registry", "scheduler", "reconciler", "metadata-cache", "gateway")
WORKERS = 2
READY_S = 90.0
_FIRST = 10


class Cluster:
    """A context: every part runs and is ready in it, and nothing of it is left behind it."""

    def __init__(self, podman: Podman, images: Mapping[str, str], root: Path, name: str) -> None:
        """`images`: by the repository that manifests name. `name`: of its network."""
        self._podman = podman
        self._images = images
        self._root = root
        self._name = name
        self._overlay = render("dev")
        self._made: dict[str, founded.Files] = {}
        self._maps: list[Object] = []
        self.addresses: dict[str, str] = {}
        self.http = httpx.Client()

    def __enter__(self) -> Self:
        try:
            self._begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()
        self._podman.run("pod", "rm", "--force", "--time", "0", *self.addresses, check=False)
        self._podman.run("network", "rm", "--force", self._name, check=False)
        gone(self._root)

    def _begin(self) -> None:
        self._podman.run("network", "create", "--disable-dns", self._name)
        (network,) = json.loads(self._podman.run("network", "inspect", self._name))
        stem = network["subnets"][0]["subnet"].rpartition(".")[0]
        pods = [*(f"{part}-0" for part in PARTS), *(f"worker-{number}" for number in range(WORKERS))]
        self.addresses = {pod: f"{stem}.{_FIRST + at}" for at, pod in enumerate(pods)}
        made = founded.found(
            self._root / "mesh", "--nats", "nats-0=nats-0.nats", "--gateway", self.addresses["gateway-0"]
        )
        self._made, self._maps = founded.secrets(made), list(of_kind(made, "ConfigMap"))
        authority = ssl.create_default_context(cadata=(self._root / "mesh/trust/authority.pem").read_text())
        key = (self._root / "mesh/admin-key").read_text().strip()
        self.http = httpx.Client(
            base_url=f"https://{self.addresses['gateway-0']}:8080",
            headers={"Authorization": f"Bearer {key}"},
            verify=authority,
            timeout=60.0,
        )
        self.play(*pods)
        for pod in pods:
            self.ready(pod)

    def part(self, pod: str) -> Workload:
        """What a pod was made of."""
        return workload(self._overlay, pod.rpartition("-")[0])

    def play(self, *pods: str) -> None:
        """Start pods, on the files that they had before."""
        hosts = {f"{each}.{self.part(each).name}.weft.svc": address for each, address in self.addresses.items()}
        hosts |= {"nats-0.nats": self.addresses["nats-0"], "gateway": self.addresses["gateway-0"]}
        made = [played(self.part(pod), int(pod[-1]), self._made, self._root, self._images, hosts) for pod in pods]
        file = self._root / "pods.yaml"
        file.write_text(yaml.safe_dump_all([*self._maps, *made]))
        addresses = [f"--ip={self.addresses[pod]}" for pod in pods]
        self._podman.run("kube", "play", "--network", self._name, *addresses, file)

    def stop(self, pod: str) -> int:
        """Delete a pod as a kubelet does, with the time that its manifest gives it; its exit status."""
        part = self.part(pod)
        grace = part.pod["terminationGracePeriodSeconds"]
        container = f"{pod}-{part.name}"
        self._podman.run("stop", "--time", str(grace), container, bound_s=grace + 60.0)
        status = int(self._podman.run("inspect", "--format", "{{.State.ExitCode}}", container))
        self._podman.run("pod", "rm", "--force", pod)
        return status

    def logs(self, pod: str) -> str:
        """What its container says."""
        return self._podman.run("logs", f"{pod}-{self.part(pod).name}", check=False)

    def ready(self, pod: str) -> None:
        """Wait until all its probes are content. Raises AssertionError with what it said last."""
        end, said = time.monotonic() + READY_S, "nothing"
        for kind, probe in self._probes(pod):
            asked = probe["httpGet"]
            port = self.part(pod).ports[asked["port"]]
            url = f"{asked.get('scheme', 'HTTP').lower()}://{self.addresses[pod]}:{port}{asked['path']}"
            while True:
                try:
                    answer = httpx.get(url, verify=False, timeout=probe["timeoutSeconds"])
                    said = f"{answer.status_code} {answer.text}"
                    if answer.is_success:
                        break
                except httpx.HTTPError as error:
                    said = repr(error)
                assert time.monotonic() < end, f"{pod}, {kind}: {said}\n{self.logs(pod)[-3000:]}"
                time.sleep(0.5)

    def _probes(self, pod: str) -> Iterator[tuple[str, Any]]:
        container = self.part(pod).container
        return ((kind, container[kind]) for kind in ("startupProbe", "livenessProbe", "readinessProbe"))

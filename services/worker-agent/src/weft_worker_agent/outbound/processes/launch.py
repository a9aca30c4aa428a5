"""How an engine host is started: its launch file, its command, and what its status lines mean."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from weft_contracts.facts.values import ENGINE_NAME, EngineName
from weft_contracts.ids import Incarnation, NodeId, ReplicaId
from weft_contracts.processors import as_list

from weft_worker_agent.domain.claimed_devices import ClaimedDevice
from weft_worker_agent.domain.numa import Bound, NumaNode
from weft_worker_agent.domain.own_part import Assignment
from weft_worker_agent.outbound.files import private_file
from weft_worker_agent.outbound.processes.loras import Lora
from weft_worker_agent.outbound.supervisor.child import LIFELINE, SECRETS
from weft_worker_agent.outbound.supervisor.environment import HOSTS, chosen

CANARY_AFTER_S = 60.0
"""A host's own default: what is not set goes into no launch, so that an older host takes it too."""


@dataclass(frozen=True, slots=True)
class LaunchIdentity:
    """What a host was started for; the supervisor keeps it, so that the next agent knows it again."""

    replica: ReplicaId
    epoch: int
    incarnation: Incarnation
    source: str
    engine: str
    backend: str = ""
    """The name of the environment that it runs in, where one was made for it."""
    bound: Bound | None = None
    """The NUMA node that it is kept to."""
    files: str = ""
    """Of a model that was fetched: its `files_digest`, and the first of its files."""
    first: str = ""
    model: str = ""
    """The model's name; empty: an older agent started it."""

    def body(self) -> dict[str, Any]:
        return {
            "replica": self.replica,
            "epoch": self.epoch,
            "incarnation": self.incarnation,
            "source": self.source,
            "engine": self.engine,
            "backend": self.backend,
            "model": self.model,
            **({"files": self.files, "first": self.first} if self.files else {}),
            "bound": self.bound.body() if self.bound is not None else None,
        }

    @staticmethod
    def of(body: Mapping[str, Any]) -> "LaunchIdentity | None":
        """An identity read back; None if somebody else wrote it."""
        try:
            return LaunchIdentity(
                ReplicaId(body["replica"]),
                int(body["epoch"]),
                Incarnation(body["incarnation"]),
                str(body["source"]),
                str(body["engine"]),
                str(body.get("backend", "")),
                Bound.of(body.get("bound")),
                str(body.get("files", "")),
                str(body.get("first", "")),
                str(body.get("model", "")),
            )
        except (KeyError, TypeError, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class Status:
    """A host's last status line. What it doesn't say is empty."""

    phase: str = ""
    port: int | None = None
    engine: EngineName | None = None
    engine_version: str = ""
    reason: str = ""
    permanent: bool = False
    unfinished: int = 0
    outside: bool = False


def status_of(line: Mapping[str, Any] | None) -> Status:
    """What a status line means; one that can't be read says nothing."""
    if line is None:
        return Status()
    port = line.get("port")
    engine = line.get("engine")
    unfinished = line.get("unfinished")
    return Status(
        phase=str(line.get("phase", "")),
        port=port if isinstance(port, int) and port > 0 else None,
        engine=engine if isinstance(engine, str) and re.fullmatch(ENGINE_NAME, engine) else None,
        engine_version=str(line.get("engine_version", "")),
        reason=str(line.get("reason", "")),
        permanent=line.get("permanent") is True,
        unfinished=unfinished if isinstance(unfinished, int) and unfinished > 0 else 0,
        outside=line.get("outside") is True,
    )


def write_launch_file(
    folder: Path,
    assignment: Assignment,
    devices: Sequence[ClaimedDevice],
    node: NodeId,
    incarnation: Incarnation,
    path: Path | None,
    host: str,
    port: int = 0,
    tls_folder: Path | None = None,
    canary_after_s: float = CANARY_AFTER_S,
    threads: int = 1,
    loras: Sequence[Lora] = (),
    numa: NumaNode | None = None,
) -> Path:
    """Write what a host needs to know and return the file's path; port 0: it chooses one. Raises OSError."""
    fact = assignment.fact
    body: dict[str, Any] = {
        "replica": fact.replica,
        "incarnation": incarnation,
        "node": node,
        "revision_digest": fact.digest,
        "engine": fact.spec.engine,
        "model_path": str(path) if path is not None else None,
        "context_tokens": fact.spec.context_tokens,
        "threads": threads,
        "concurrency": fact.spec.concurrency,
        "devices": [_device(device) for device in devices],
        "engine_args": fact.spec.engine_args,
        "host": host,
        "port": port,
        "tls_folder": str(tls_folder) if tls_folder is not None else None,
        "correlation_id": assignment.cause.correlation_id,
    }
    if len(fact.members) > 1:
        body |= {"rank": fact.member(node).rank, "ranks": len(fact.members)}
    if loras:
        body["adapters"] = [asdict(lora) for lora in loras]
    if canary_after_s != CANARY_AFTER_S:
        body["canary_after_s"] = canary_after_s
    if numa is not None:
        body["numa"] = {"node": numa.index, "processors": as_list(numa.processors)}
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    target = folder / f"{fact.replica}.json"
    private_file.write(target, json.dumps(body, indent=1).encode())
    return target


def _device(device: ClaimedDevice) -> dict[str, Any]:
    """What is not known is not said, so that an older host takes it too."""
    body = asdict(device)
    return body if device.pci else {name: value for name, value in body.items() if name != "pci"}


def command(python: str, launch_file: Path, *, secrets: bool = False) -> list[str]:
    """How a host is started; the supervisor puts in the numbers of its lifeline and of the pipe for its secrets."""
    told = ["--secrets", SECRETS] if secrets else []
    return [python, "-m", "weft_engine", "--launch", str(launch_file), "--lifeline", LIFELINE, *told]


def environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What a host inherits of the agent's environment."""
    return chosen(HOSTS, environ)

"""Files that nodes of a mesh fetch ahead of need, and a hub that has them. Not a script, but for the hub's process."""

import mmap
import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import psutil
import weft_tiny
from mesh_cpu import cpu_of
from weft_testing.hub_server import hub_server
from weft_testing.story import MeshUnderTest, until


@dataclass(frozen=True, slots=True)
class Fetched:
    """Seconds by the log's times, from the wish to the last node's word that the files came; MiB of memory."""

    wall: float
    cpu: float
    """of the processor, of all agents"""
    rested: float
    """The most that any of their agents had in memory before."""
    memory: float
    """The most that any of them had meanwhile."""


def sparse(folder: Path, count: int, size: int) -> list[Path]:
    """So many files of so many bytes that begin as models, are holes and end otherwise each: they take no room."""
    made = list[Path]()
    for number in range(count):
        path = folder / f"large-{number}.gguf"
        with path.open("wb") as file:
            file.write(weft_tiny.gguf_path().read_bytes())
            file.truncate(size)
            file.seek(size - 8)
            file.write(number.to_bytes(8))
        made.append(path)
    return made


@contextmanager
def hub(folder: Path, address: str, inside: Callable[[Sequence[str]], list[str]] = list) -> Generator[str]:
    """A hub with a repository `bench/NAME` for each file of a folder; its URL, once it has hashed them.

    `inside` makes of a command line one that runs it where the address is."""
    command = inside([sys.executable, __file__, str(folder), address])
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        url = process.stdout.readline().strip()
        assert url, "the hub did not start"
        yield url
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait(30)


def settings(url: str, folder: Path) -> dict[str, str]:
    """Of workers that are to ask that hub, and nothing else."""
    return {
        "WEFT_HUB": url,
        "WEFT_SOURCES_ALLOW": url.removeprefix("http://").partition(":")[0],
        "HF_HOME": str(folder / "hf"),
    }


def remove(mesh: MeshUnderTest, model: str) -> None:
    """Have all nodes remove a model's files, and wait until they are gone. Raises NotInTime."""
    after = int(mesh.status()["log"]["position"])
    answer = mesh.http.post(f"{mesh.url}/api/files/remove", json={"files": model}).raise_for_status().json()
    count = len(answer["nodes"].split(","))
    until("the files are gone", lambda: len(mesh.facts("machine", "files_gone", after)) == count, 60)


def deploy(mesh: MeshUnderTest, file: Path) -> str:
    """A model of the hub that nobody runs; its name."""
    source = {"kind": "hf", "repository": f"bench/{file.stem}"}
    answer = mesh.deploy(file.stem, {"source": source, "engine": "llama.cpp", "min_replicas": 0})
    assert answer.is_success, answer.text
    return file.stem


def fetch(mesh: MeshUnderTest, model: str, nodes: dict[str, psutil.Process], within: float) -> Fetched:
    """Have the nodes, by name and with their agents, fetch a model's files. Raises NotInTime."""
    after = int(mesh.status()["log"]["position"])
    agents = [*nodes.values()]
    for agent in agents:
        Path(f"/proc/{agent.pid}/clear_refs").write_text("5")  # the peak begins anew
    before, rested = sum(map(cpu_of, agents)), max(_most_memory(agent) for agent in agents)
    body = {"model": model, "nodes": list(nodes)}
    mesh.http.post(f"{mesh.url}/api/files/fetch", json=body).raise_for_status()

    def came() -> list[dict[str, Any]]:
        found = mesh.facts("machine", "files_came", after)
        return found if len(found) == len(nodes) else []

    last = until(f"{len(nodes)} nodes have the files", lambda: _slowly(came), within)[-1]
    began = float(mesh.facts("node", "files_wanted", after)[0]["at"])
    cpu = sum(map(cpu_of, agents)) - before
    return Fetched(float(last["at"]) - began, cpu, rested, max(_most_memory(agent) for agent in agents))


def _slowly(look: Callable[[], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Whoever measures is not to take what is measured."""
    time.sleep(0.4)
    return look()


def _most_memory(process: psutil.Process) -> float:
    """MiB, since it was asked to begin anew."""
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("a process has no peak of memory")


def _serve(folder: Path, address: str) -> None:
    """Until stdin ends."""
    with hub_server(address) as server:
        for path in sorted(folder.iterdir()):
            with path.open("rb") as file:
                body = cast(bytes, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))  # it is sliced as they are
            server.repository(f"bench/{path.stem}", {path.name: body})
        print(server.url, flush=True)
        sys.stdin.read()
    os._exit(0)  # maps are open


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), sys.argv[2])

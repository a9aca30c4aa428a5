"""What a fetch costs: the resolver beside curl, both over TLS from one nginx, in turns; and blake3 alone.

    python bench/files.py [--gigabytes 4] [--rounds 3] [--nodes] [--nginx PATH] [--folder FOLDER]

The server's file is sparse, so it is read as zeros and takes no room; what is fetched is real and lies in FOLDER,
where it is removed again. Each fetch is a process of its own: seconds of the processor are its own, of the user and of
the system, the server's stand beside. The resolver hashes and syncs; curl does neither, and once is synced besides.
With `--nodes` one more way is in the turns: two workers of a mesh over TLS, of which one has the file, and the other is
told to fetch it ahead of need. Whole agents, by the log's times from the wish to the word that the file came; its
sha256 is made besides, as a hub's files are named by it; the first node's copy, from a hub on loopback, isn't timed.

Debian's nginx needs no installation: `apt-get download nginx nginx-common`, `dpkg -x`. Without it the server is
Python's, which is told.
"""

import argparse
import os
import shutil
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import ahead
import psutil
from blake3 import blake3
from mesh_cpu import cpu_of
from weft_contracts import certificates
from weft_identity.authority import load_or_make
from weft_servers import port
from weft_testing.story import MeshUnderTest

GB = 10**9
NODES = ("worker-1", "worker-2")
_NGINX = """
daemon off; master_process off; pid {folder}/nginx.pid; error_log stderr error;
events {{ }}
http {{
    access_log off; sendfile on;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port} ssl;
        ssl_certificate {chain}; ssl_certificate_key {key};
        root {folder}/served;
    }}
}}
"""
_FETCH = """
import asyncio, ssl, sys
from pathlib import Path
from weft_files import Address, Checksum, Reach, Resolver, Store, Wanted

async def go(folder, url, size, authority, *checksum):
    context = ssl.create_default_context(cafile=authority)
    store = Store(Path(folder), keep_free=0)
    resolver = Resolver(store, Reach(["127.0.0.1"]), trust=lambda address: (context, ""))
    said = Checksum.parse(checksum[0]) if checksum else None
    blob = await resolver.fetch(Wanted("file", int(size), said, int(size)), [Address(url)])
    assert blob.size == int(size)
    resolver.close()

asyncio.run(go(*sys.argv[1:]))
"""


@dataclass(frozen=True)
class Cost:
    """Of one fetch: seconds, seconds of the processor of who fetches and of who serves, MiB at most."""

    wall: float
    cpu: float
    served: float
    memory: float


def cost(argv: list[str], server: psutil.Process) -> Cost:
    """Of a process that must end well."""
    before, began = cpu_of(server), time.monotonic()
    process = subprocess.Popen(argv)
    _, status, used = os.wait4(process.pid, 0)
    took = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(argv[:3])} … ended with {process.returncode}")
    return Cost(took, used.ru_utime + used.ru_stime, cpu_of(server) - before, used.ru_maxrss / 1024)


@contextmanager
def serving(folder: Path, nginx: str | None) -> Generator[tuple[str, psutil.Process]]:
    """The address of the folder `served`, and who serves it."""
    trust = folder / "trust"
    trust.mkdir(mode=0o700)
    authority = load_or_make(trust)
    tls = folder / "tls"
    authority.lay_out(tls, "gateway", ["127.0.0.1"])
    [held] = port.take()
    number = held.number
    held.release()
    if nginx is None:
        argv = [sys.executable, __file__, "--serve", str(folder), str(number)]
    else:
        conf = folder / "nginx.conf"
        chain, key = tls / certificates.CERTIFICATE, tls / certificates.KEY
        conf.write_text(_NGINX.format(folder=folder, port=number, chain=chain, key=key))
        argv = [nginx, "-p", str(folder), "-c", str(conf)]
    process = subprocess.Popen(argv)
    try:
        url = f"https://127.0.0.1:{number}"
        asked = ["curl", "-sS", "--retry", "50", "--retry-connrefused", "--retry-delay", "1", "-o", os.devnull]
        subprocess.run(
            [*asked, "--cacert", str(trust / certificates.AUTHORITY), f"{url}/little"],
            check=True,
            stderr=subprocess.DEVNULL,
        )
        yield url, psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(30)


def serve(folder: Path, number: int) -> None:
    """Python's server, where there is no nginx."""
    os.chdir(folder / "served")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls" / certificates.CERTIFICATE, folder / "tls" / certificates.KEY)
    server = ThreadingHTTPServer(("127.0.0.1", number), SimpleHTTPRequestHandler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


def blake3_speed(size: int = GB) -> float:
    """GB of zeros hashed in a second of one core, a MiB at a time."""
    piece, hashing = bytes(1 << 20), blake3()
    began = time.process_time()
    for _ in range(size >> 20):
        hashing.update(piece)
    return size / GB / (time.process_time() - began)


def digest_of_zeros(size: int) -> str:
    hashing, piece = blake3(), bytes(1 << 20)
    for at in range(0, size, 1 << 20):
        hashing.update(piece[: min(1 << 20, size - at)])
    return f"blake3:{hashing.hexdigest()}"


def median(costs: list[Cost], of: Callable[[Cost], float]) -> float:
    return statistics.median(map(of, costs))


@contextmanager
def nodes(folder: Path, size: int, rounds: int) -> Generator[Callable[[], Cost]]:
    """Two of them; a call has one fetch a file that the other was given before, a new one each time."""
    (folder / "hub").mkdir()
    files = ahead.sparse(folder / "hub", rounds, size)
    within = 120 + size / (10 << 20)
    with ahead.hub(folder / "hub", "127.0.0.1") as url:
        mesh = MeshUnderTest(folder, workers=2, inside=list, WEFT_TLS="always", **ahead.settings(url, folder))
        try:
            mesh.up("--no-model")
            giver, taker = (mesh.agents(name)[0] for name in NODES)

            def one() -> Cost:
                model = ahead.deploy(mesh, files.pop())
                ahead.fetch(mesh, model, {NODES[0]: giver}, within)
                os.sync()
                before = cpu_of(giver)
                found = ahead.fetch(mesh, model, {NODES[1]: taker}, within)
                served = cpu_of(giver) - before
                ahead.remove(mesh, model)
                return Cost(found.wall, found.cpu, served, found.memory)

            yield one
        finally:
            mesh.close()


def compare(
    folder: Path, url: str, server: psutil.Process, size: int, rounds: int, between: Callable[[], Cost] | None
) -> None:
    """All ways in turns, as often as there are rounds. `between`: of two nodes."""
    authority = str(folder / "trust" / certificates.AUTHORITY)
    curled, store = folder / "curled", folder / "store"
    curl = ["curl", "-sS", "--fail", "--cacert", authority, "-o", str(curled), f"{url}/large"]
    synced = ["sh", "-c", '"$@" && sync "$0"', str(curled), *curl]
    fetch = [sys.executable, "-c", _FETCH, str(store), f"{url}/large", str(size), authority, digest_of_zeros(size)]
    found: dict[str, list[Cost]] = {"curl": [], "curl, synced": [], "resolver": []}
    for _ in range(rounds):
        for name, argv in (("curl", curl), ("curl, synced", synced), ("resolver", fetch)):
            found[name].append(cost(argv, server))
            curled.unlink(missing_ok=True)
            shutil.rmtree(store, ignore_errors=True)
            os.sync()
        if between is not None:
            found.setdefault("node to node", []).append(between())
    for name, costs in found.items():
        wall, cpu = median(costs, lambda each: each.wall), median(costs, lambda each: each.cpu)
        print(
            f"{name:<13} {wall:6.1f} s, {size / GB / wall:5.2f} GB/s; processor {cpu:5.1f} s,"
            f" server {median(costs, lambda each: each.served):5.1f} s; memory {max(c.memory for c in costs):4.0f} MiB"
        )
    for name in {*found} & {"resolver", "node to node"}:
        synced_too, plain = (
            statistics.median(a.wall / b.wall for a, b in zip(found[other], found[name], strict=True))
            for other in ("curl, synced", "curl")
        )
        print(
            f"speed, {name}: {plain:.2f} of curl's, {synced_too:.2f} of curl's with its file synced,"
            f" medians of {rounds} pairs; load {os.getloadavg()[0]:.1f}"
        )


def main() -> None:
    """Print the medians and their ratios."""
    if sys.argv[1:2] == ["--serve"]:
        serve(Path(sys.argv[2]), int(sys.argv[3]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--nodes", action="store_true", help="from node to node, too")
    parser.add_argument("--nginx", default=shutil.which("nginx"), help="its program (default: that on the PATH)")
    parser.add_argument("--folder", type=Path, help="on the disk that is written to (default: a temporary folder)")
    given = parser.parse_args()
    print(f"blake3: {blake3_speed():.1f} GB/s of one core")
    with tempfile.TemporaryDirectory(prefix="weft-bench-", dir=given.folder) as made:
        folder, size = Path(made), int(given.gigabytes * GB)
        (folder / "served").mkdir()
        (folder / "served" / "little").write_bytes(b"x")
        with (folder / "served" / "large").open("wb") as file:
            file.truncate(size)
        with ExitStack() as stack:
            url, server = stack.enter_context(serving(folder, given.nginx))
            between = stack.enter_context(nodes(folder, size, given.rounds)) if given.nodes else None
            print(f"{given.gigabytes:g} GB from {'nginx' if given.nginx else 'a server in Python: no nginx found'}")
            compare(folder, url, server, size, given.rounds, between)


if __name__ == "__main__":
    main()

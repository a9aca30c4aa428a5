"""What TLS costs: CPU time of gateway and engine host for a streamed token, beside the same mesh without it.

    python bench/tls.py [--streams 100] [--ms 10] [--seconds 6] [--rounds 5]

Two whole meshes with a simulated engine, one plain and one with WEFT_TLS=always, asked in turns. The load comes from
another process (`load.py`).
"""

import os
import statistics
import tempfile
from pathlib import Path

import psutil
from mesh_cpu import cpu_of
from streams import MODEL, child, paced, simulated
from weft_testing.story import MeshUnderTest, until

FULL = 100
"""Tokens of a streamed answer."""
Costs = tuple[float, float]


def cost(mesh: MeshUnderTest, unit: str, words: list[str]) -> Costs:
    """Microseconds of CPU for each `unit` (a key of the load): the gateway's, the engine host's."""
    gateway = psutil.Process(mesh.pid("gateway"))
    (host,) = mesh.hosts()
    before = cpu_of(gateway), cpu_of(host)
    os.environ["SSL_CERT_FILE"] = str(mesh.state / "trust" / "authority.pem")  # there is none where nobody needs it
    found = child("load.py", mesh.url, MODEL, *words)
    return 1e6 * (cpu_of(gateway) - before[0]) / found[unit], 1e6 * (cpu_of(host) - before[1]) / found[unit]


def main() -> None:
    """Print the medians and their ratio."""
    given = paced(__doc__, seconds=6, rounds=5).parse_args()
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as folder:
        plain = MeshUnderTest(Path(folder) / "plain")
        secure = MeshUnderTest(Path(folder) / "tls", WEFT_TLS="always")
        try:
            for mesh in (plain, secure):
                mesh.folder.mkdir()
                mesh.up("--no-model")
                mesh.deploy(MODEL, simulated(given.ms)).raise_for_status()
                until("the model answers", lambda mesh=mesh: mesh.ready_replicas(MODEL), 60)
            compare(plain, secure, given.streams, given.seconds, given.rounds)
        finally:
            plain.close()
            secure.close()


def compare(plain: MeshUnderTest, secure: MeshUnderTest, streams: int, seconds: float, rounds: int) -> None:
    """Measure both in turns, as often as there are rounds."""
    common = ["--streams", str(streams), "--seconds", str(seconds)]
    for what, unit, words in (
        ("streamed token", "tokens", ["--tokens", str(FULL)]),
        ("whole answer of 1 token", "requests", ["--tokens", "1", "--whole"]),
    ):
        pairs = [(cost(plain, unit, [*common, *words]), cost(secure, unit, [*common, *words])) for _ in range(rounds)]
        for part, who in ((0, "gateway"), (1, "engine host")):
            without, with_tls = ([pair[side][part] for pair in pairs] for side in (0, 1))
            ratio = statistics.median(b / a for a, b in zip(without, with_tls, strict=True))
            print(
                f"{what:<26}{who:<12}{statistics.median(without):>8.1f} µs plain {statistics.median(with_tls):>8.1f} µs"
                f" TLS   ratio {ratio:.2f}   load average {os.getloadavg()[0]:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()

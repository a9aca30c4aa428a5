"""Processes that begin at once on one cold store: each file leaves its source once."""

import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from weft_files import Store
from weft_testing.origin import Request, head, ranged, serving
from weft_testing.wanted_files import content, wanted

SMALL, LARGE = content(200_000), content(500_000, seed=1)
"""One comes in one stream, the other in ranges."""
_FETCH = """
import asyncio, sys
from pathlib import Path
from weft_files import Address, Checksum, Reach, Resolver, Store, Wanted
from weft_testing.wanted_files import QUICK

async def go(folder, *files):
    resolver = Resolver(Store(Path(folder), keep_free=0), Reach(["127.0.0.1"]), bounds=QUICK)
    await asyncio.gather(*(
        resolver.fetch(Wanted("model.gguf", int(size), Checksum.parse(checksum), 1 << 30), [Address(url)])
        for url, size, checksum in (each.split(" ") for each in files)
    ))

asyncio.run(go(*sys.argv[1:]))
"""


@pytest.mark.parametrize("processes", [2, pytest.param(8, marks=pytest.mark.slow)])
def test_processes_that_begin_at_once_on_one_cold_store_fetch_each_file_once(tmp_path: Path, processes: int) -> None:
    def slowly(taken: socket.socket, request: Request) -> None:
        if request.path.endswith("large"):
            time.sleep(0.1)
            ranged(LARGE)(taken, request)
            return
        taken.sendall(head(200, content_length=len(SMALL)))
        for at in range(0, len(SMALL), 10_000):
            taken.sendall(SMALL[at : at + 10_000])
            time.sleep(0.02)

    # given two files at one source, wanted by all at once
    with serving(slowly) as origin:
        wants = {f"{origin.url}/{name}": wanted(body) for name, body in (("small", SMALL), ("large", LARGE))}
        files = [f"{url} {want.size} {want.checksum}" for url, want in wants.items()]
        started = [subprocess.Popen([sys.executable, "-c", _FETCH, str(tmp_path), *files]) for _ in range(processes)]
        assert [0] * processes == [each.wait(60) for each in started]
    # then the one was asked for once, and of the other each range once
    spans = [each.span for each in origin.asked if each.path.endswith("large")]
    assert 1 == len(origin.asked) - len(spans)
    assert [(at, min(at + (1 << 16), len(LARGE))) for at in range(0, len(LARGE), 1 << 16)] == sorted(
        filter(None, spans)
    )
    assert len(spans) == len({*spans})
    # and all of them have it
    found = [Store(tmp_path).find(want) for want in wants.values()]
    assert [SMALL, LARGE] == [blob.path.read_bytes() for blob in found if blob is not None]

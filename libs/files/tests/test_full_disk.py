"""A disk that others fill while a file comes: one named error, nothing left, and the file once there is room again."""

import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from weft_testing.origin import Request, head, ranged, serving
from weft_testing.wanted_files import content, wanted

BODY = content(1_000_000)
FILLED_AT = 900_000
_FETCH = """
import asyncio, sys, urllib.request
from pathlib import Path
from weft_files import Address, Checksum, NoRoom, Reach, Resolver, Store, Wanted
from weft_testing.wanted_files import QUICK, left

async def go(folder, url, size, checksum, filled_at):
    disk = Path(folder)
    ballast, wanted = disk / "ballast", Wanted("model.gguf", int(size), Checksum.parse(checksum), 1 << 30)
    store = Store(disk / "store", keep_free=0)
    resolver = Resolver(store, Reach(["127.0.0.1"]), bounds=QUICK)

    def others_fill_it(came):
        if came >= int(filled_at) - (1 << 16) and not ballast.exists():
            with ballast.open("wb", buffering=0) as file:
                try:
                    while True:
                        file.write(bytes(4096))
                except OSError:
                    pass
            urllib.request.urlopen(f"{url}/filled", timeout=20).read()

    try:
        await resolver.fetch(wanted, [Address(url)], others_fill_it)
    except NoRoom as full:
        print(full, "and", left(store))
    ballast.unlink()
    blob = await resolver.fetch(wanted, [Address(url)])
    print(blob.blake3, blob.path.stat().st_size)
    resolver.close()

asyncio.run(go(*sys.argv[1:]))
"""


def test_a_disk_that_fills_at_90_percent_is_one_named_error_leaves_nothing_and_is_no_more_once_there_is_room(
    tmp_path: Path,
) -> None:
    # given a disk with room for the file, whose last tenth comes when others have filled the disk
    want, filled = wanted(BODY), threading.Event()

    def send(taken: socket.socket, request: Request) -> None:
        if request.path.endswith("/filled"):
            filled.set()
            taken.sendall(head(200, content_length=0))
            return
        if (request.span or (0, 0))[1] > FILLED_AT:
            filled.wait(10)
        ranged(BODY)(taken, request)

    mount = 'mount -t tmpfs -o size=2m none "$0" && exec "$@"'
    with serving(send) as origin:
        arguments = [str(tmp_path), origin.url, str(want.size), str(want.checksum), str(FILLED_AT)]
        command = ["unshare", "-rm", "sh", "-c", mount, str(tmp_path), sys.executable, "-c", _FETCH, *arguments]
        # when
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if "unshare" in ran.stderr or "mount" in ran.stderr:
        pytest.skip(f"no file system of one's own: {ran.stderr[:100]}")
    # then
    assert (0, "") == (ran.returncode, ran.stderr)
    full, again = ran.stdout.splitlines()
    assert full.startswith(f"the disk under {tmp_path}")
    assert "is full" in full
    assert full.endswith("and []")
    assert f"{str(want.checksum).removeprefix('blake3:')} {len(BODY)}" == again

"""Old and new workers and gateways read one another's cards; eight gateways of one host fetch each file once."""

import asyncio
import json
import socket
import sys
from pathlib import Path

import pytest
from weft_contracts.card import Reading, how_to_read
from weft_contracts.facts.source import HfSource, PathSource
from weft_testing.hub_server import hub_server
from weft_testing.origin import Request, head, serving, whole
from weft_testing.publishing_mesh import NAME

from .reading_gateway import BODY, FILE, Gateway, port_of


@pytest.mark.parametrize(
    ("worker", "gateway_is_new", "reading", "asked"),
    [
        ("old", False, Reading.BY_SOURCE_PATH, "path"),
        ("old", True, Reading.BY_SOURCE_PATH, "path"),
        ("new without self-hosting", False, Reading.BY_SLOTS, "path"),
        ("new without self-hosting", True, Reading.BY_OWN_ADDRESS, "source"),
        ("new with self-hosting", True, Reading.FROM_WORKER, "worker"),
        ("new with self-hosting", False, Reading.BY_SOURCE_PATH, "path"),
    ],
)
async def test_old_and_new_workers_and_gateways_read_one_another(
    tmp_path: Path, worker: str, gateway_is_new: bool, reading: Reading, asked: str
) -> None:
    """Each side is the real one, but for an older gateway: it reads the card's JSON as it always did."""
    self_hosted = {"old": None, "new without self-hosting": False, "new with self-hosting": True}[worker]
    # given a model of a hub, or at a path where the path is what is read
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "tokenizer.json").write_bytes(BODY)
    with hub_server() as hub, serving(whole(BODY)) as server:
        commit = hub.repository("o/m", {"tokenizer.json": BODY})
        at_hub, at_path = HfSource(repository="o/m", revision=commit), PathSource(path=str(tmp_path / "m"))
        source = at_path if asked == "path" else at_hub
        gateway = Gateway(tmp_path / "cards", source, FILE, hub=hub.url)
        gateway.mesh.publish(1, FILE, port=port_of(server), self_hosted=self_hosted)
        card = gateway.files.card(NAME)
        assert card is not None
        # when it is read
        assert reading is how_to_read(card, reader_is_new=gateway_is_new, self_hosted=self_hosted is True)
        if gateway_is_new:
            content = await gateway.content()
        else:
            written = json.loads(gateway.file().model_dump_json())
            content = await asyncio.to_thread(Path(written["path"]).read_bytes)
        # then it comes from where the matrix says, and from nowhere else
        assert BODY == content
        assert (asked == "worker", asked == "source") == (len(server.asked) == 1, hub.count("tokenizer.json") > 0)
        await gateway.files.close()


PROCESS = """
import asyncio, sys
from pathlib import Path
from weft_gateway.domain.card_files import CardSettings
from weft_gateway.outbound.fetched_card_files import FetchedCardFiles
from weft_gateway.projections.directory import Directory
from weft_testing.publishing_mesh import NAME, PublishingMesh, published

async def nothing(name, size, take):
    raise KeyError(name)

async def main(folder, port):
    directory = Directory()
    mesh = PublishingMesh(lambda commit: directory.fold([commit]))
    bodies = [b"a" * 300_000, b"b" * 3_000_000]
    mesh.publish(1, *(published(body, f"{number}.json") for number, body in enumerate(bodies)), port=int(port))
    files = FetchedCardFiles(directory, nothing, CardSettings(Path(folder)))
    print("ready", flush=True)
    sys.stdin.readline()
    paths = await asyncio.gather(*(files.file(NAME, each) for each in files.card(NAME).files))
    assert bodies == [path.read_bytes() for path in paths], paths
    await files.close()

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.slow
async def test_eight_processes_with_one_cold_folder_fetch_each_file_once(tmp_path: Path) -> None:
    bodies = [b"a" * 300_000, b"b" * 3_000_000]

    def send(taken: socket.socket, request: Request) -> None:
        body = bodies[int(request.path.rpartition("/")[2][0])]
        taken.sendall(head(200, content_length=len(body)) + body)

    with serving(send) as worker:
        argv = (sys.executable, "-c", PROCESS, str(tmp_path / "cards"), str(port_of(worker)))
        pipe = asyncio.subprocess.PIPE
        processes = [await asyncio.create_subprocess_exec(*argv, stdin=pipe, stdout=pipe) for _ in range(8)]
        try:
            for process in processes:
                assert process.stdout is not None
                assert b"ready\n" == await asyncio.wait_for(process.stdout.readline(), 120)
            ends = await asyncio.wait_for(asyncio.gather(*(each.communicate(b"go\n") for each in processes)), 120)
        finally:
            for process in processes:
                if process.returncode is None:
                    process.kill()
                    await process.wait()

    assert 8 == len(ends)
    assert [0] * 8 == [process.returncode for process in processes]
    assert 2 == len(worker.asked)

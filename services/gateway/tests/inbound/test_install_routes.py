"""`/install` over a real socket: files by their digest for everybody off loopback, nothing else, so many at once."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import Request
from weft_gateway.domain.access import Policy
from weft_gateway.domain.rate_limiter import LIMITS, Allowance
from weft_gateway.domain.refused import Refused
from weft_gateway.inbound.http.application import application
from weft_gateway.inbound.http.authenticator import Authenticator
from weft_gateway.inbound.install import Install
from weft_gateway.projections.keys import Keys
from weft_runtime.web import QuietServer
from weft_testing.served import served

WHEEL = bytes(range(256)) * 4096
DIGEST = hashlib.sha256(WHEEL).hexdigest()
FILE = f"/install/{DIGEST}/weft_cli-0.1.0-py3-none-any.whl"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """As `weft up` lays it out, beside something that nobody may have."""
    (tmp_path / "secret").write_text("treasure")
    served = tmp_path / "install"
    (served / DIGEST).mkdir(parents=True)
    (served / DIGEST / Path(FILE).name).write_bytes(WHEEL)
    (served / f"{DIGEST}.sh").write_text("#!/bin/sh\n")
    return served


def server(folder: Path, policy: Policy) -> QuietServer:
    """Of a gateway that hasn't folded its log."""
    app = application(
        [Install(folder, at_once=2).router],
        [],
        authenticator=Authenticator(policy, Keys(), lambda: False),
        max_body=1 << 20,
        instance="gw",
    )
    return QuietServer(uvicorn.Config(app, ws="none", lifespan="off", log_config=None, host="127.0.0.1", port=0))


@pytest.fixture(params=["keys"])
async def gateway(folder: Path, request: pytest.FixtureRequest) -> AsyncIterator[httpx.AsyncClient]:
    """A client without a key."""
    async with served(server(folder, request.param)) as client:
        yield client


async def test_whoever_names_a_file_by_its_digest_gets_it_without_a_key(gateway: httpx.AsyncClient) -> None:
    answer = await gateway.get(FILE)
    assert (200, WHEEL) == (answer.status_code, answer.content)
    assert (str(len(WHEEL)), "nosniff") == (
        answer.headers["content-length"],
        answer.headers["x-content-type-options"],
    )
    assert "#!/bin/sh\n" == (await gateway.get(f"/install/{DIGEST}.sh")).text


async def test_who_asks_for_the_head_alone_has_no_file_read(
    gateway: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Any] = []
    plain = asyncio.to_thread

    async def seen(*work: Any) -> Any:
        read.append(work)
        return await plain(*work)

    monkeypatch.setattr("weft_gateway.inbound.install.asyncio.to_thread", seen)
    answer = await gateway.head(FILE)
    assert (200, b"", str(len(WHEEL))) == (answer.status_code, answer.content, answer.headers["content-length"])
    assert not read
    assert WHEEL == (await gateway.get(FILE)).content
    assert read


@pytest.mark.parametrize(
    "path",
    [
        "/install/",
        "/install/secret",
        f"/install/{DIGEST}",
        f"/install/{DIGEST}/other.whl",
        f"/install/{DIGEST}/..",
        f"/install/{DIGEST}/%2e%2e%2f%2e%2e%2fsecret",
        f"/install/{DIGEST}/..%2fsecret",
        "/install/../secret",
        "/install/%2e%2e/secret",
        "/install/..%2fsecret.sh",
        f"/install/{DIGEST.upper()}.sh",
        f"/install/{'0' * 64}.sh",
        f"/install/{DIGEST}/.hidden",
    ],
)
async def test_nothing_else_is_there(gateway: httpx.AsyncClient, folder: Path, path: str) -> None:
    (folder / DIGEST / ".hidden").write_text("treasure")
    answer = await gateway.get(path)
    assert answer.status_code in (401, 404), answer.text
    assert "treasure" not in answer.text
    assert 405 == (await gateway.post(FILE)).status_code


@pytest.mark.parametrize("gateway", ["local"], indirect=True)
async def test_where_this_machine_alone_needs_no_key_others_get_nothing(gateway: httpx.AsyncClient) -> None:
    assert 200 == (await gateway.get(FILE)).status_code
    assert 403 == (await gateway.get(FILE, headers={"host": "10.0.0.1"})).status_code


async def test_beyond_so_many_at_once_others_are_told_to_come_again(
    gateway: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, go_on = asyncio.Event(), asyncio.Event()
    plain = asyncio.to_thread

    async def held(*work: Any) -> Any:
        reading.set()
        await go_on.wait()
        return await plain(*work)

    monkeypatch.setattr("weft_gateway.inbound.install.asyncio.to_thread", held)
    first, second = (asyncio.create_task(gateway.get(FILE)) for _ in range(2))
    await asyncio.wait_for(reading.wait(), 10)
    while True:  # until both are counted
        refused = await gateway.get(f"/install/{DIGEST}/unknown.whl")
        if refused.status_code == 503:
            break
        assert 404 == refused.status_code
        await asyncio.sleep(0.01)
    assert "5" == refused.headers["retry-after"]
    go_on.set()
    assert [WHEEL, WHEEL] == [(await each).content for each in (first, second)]
    assert 200 == (await gateway.get(FILE)).status_code


async def test_one_address_does_not_take_all_places(folder: Path) -> None:
    install = Install(folder, at_once=3, of_one=2)
    name = Path(FILE).name
    sending, go_on = asyncio.Semaphore(0), asyncio.Event()

    async def held(_message: Any) -> None:
        sending.release()
        await go_on.wait()

    async def sent_to(address: str) -> asyncio.Task[None]:
        request = asked_by(address)
        answer = await install.file(request, DIGEST, name)
        task = asyncio.create_task(answer(request.scope, nothing, held))
        await asyncio.wait_for(sending.acquire(), 10)
        return task

    tasks = [await sent_to("10.0.0.1") for _ in range(2)]
    # given one that has its share, then others still get theirs, and so many in all
    with pytest.raises(Refused, match="try again"):
        await install.file(asked_by("10.0.0.1"), DIGEST, name)
    tasks.append(await sent_to("10.0.0.2"))
    with pytest.raises(Refused, match="try again"):
        await install.file(asked_by("10.0.0.3"), DIGEST, name)
    go_on.set()
    await asyncio.gather(*tasks)
    await (await sent_to("10.0.0.1"))
    assert not install.sent


async def test_who_takes_nothing_loses_the_place(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft_gateway.inbound.install.BLOCK_S", 0.01)
    install = Install(folder)
    request = asked_by("10.0.0.1")
    answer = await install.file(request, DIGEST, Path(FILE).name)

    async def stuck(message: Any) -> None:
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(answer(request.scope, nothing, stuck), 10)
    assert not install.sent


def asked_by(address: str) -> Request:
    """A request as the middleware hands it on."""
    request = Request({"type": "http", "client": (address, 4000), "headers": []})
    request.state.head_only = False
    return request


async def nothing() -> Any:
    """No more of a request comes."""


async def test_strangers_are_counted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LIMITS, "look", (Allowance(5, 1000.0), Allowance(3000, 1000.0)))
    async with served(server(folder, "keys")) as client:
        statuses = [(await client.get(FILE)).status_code for _ in range(7)]
    assert [200] * 5 + [429] * 2 == statuses

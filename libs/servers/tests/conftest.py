"""What the tests of real servers share: watching processes, bounded waits, connecting by token."""

import asyncio
import base64
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from nats.aio.client import Client
from weft_identity.nkey import KeyPair
from weft_identity.trust import Credentials

BOUND_S = 30.0

Connect = Callable[[str, Credentials, str], Awaitable[Any]]
Parent = Callable[[str, Path], tuple[subprocess.Popen[str], list[int]]]


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], None]:
    """Wait until something holds; fail after half a minute."""

    def wait(holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + BOUND_S
        while not holds():
            assert time.monotonic() < deadline, f"not so after {BOUND_S} s"
            time.sleep(0.02)

    return wait


@pytest.fixture
def runs() -> Callable[[int], bool]:
    """Tell whether a process runs; one that only waits to be reaped doesn't."""

    def tell(pid: int) -> bool:
        answer = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
        return answer.stdout.strip() not in ("",) and not answer.stdout.strip().startswith("Z")

    return tell


@pytest.fixture
def parent() -> Iterator[Parent]:
    """Run Python lines, with the name `folder`, in another process that prints process ids and then waits."""
    started: list[subprocess.Popen[str]] = []

    def run(lines: str, folder: Path) -> tuple[subprocess.Popen[str], list[int]]:
        code = f"import pathlib, sys, time\nfolder = pathlib.Path(sys.argv[1])\n{lines}\ntime.sleep(120)\n"
        process = subprocess.Popen([sys.executable, "-u", "-c", code, str(folder)], stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, "the parent ended before it had started its servers"
        return process, [int(each) for each in line.split()]

    yield run
    for process in started:
        process.kill()
        process.wait(BOUND_S)
        if process.stdout is not None:
            process.stdout.close()


@pytest_asyncio.fixture
async def connect() -> AsyncIterator[Connect]:
    """Connect a user with its own inbox prefix and no second try; what it is refused goes to `errors`."""
    clients: list[Any] = []

    async def with_credentials(url: str, credentials: Credentials, inbox: str) -> Any:
        key = KeyPair.from_seed(credentials.seed)

        def sign(nonce: str) -> bytes:
            return base64.b64encode(key.sign(nonce.encode()))

        async def quiet(error: Exception) -> None:
            pass

        client: Any = Client()  # its types are partial
        clients.append(client)
        await asyncio.wait_for(
            client.connect(
                url,
                user_jwt_cb=credentials.token.encode,
                signature_cb=sign,
                inbox_prefix=inbox.encode(),
                error_cb=quiet,
                allow_reconnect=False,
                max_reconnect_attempts=1,
                connect_timeout=30,
            ),
            BOUND_S,
        )
        return client

    yield with_credentials
    for client in clients:
        await client.close()  # also one that was refused: its socket is still open

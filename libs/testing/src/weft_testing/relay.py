"""A door between networks: what comes to one address goes on to another, byte for byte.

    python -m weft_testing.relay LISTEN TARGET

Either is `unix:PATH` or `tcp:HOST:PORT`. A Unix socket is a file, so it is reached from every network namespace: so a
test speaks with a machine that is not on its own network. Ends when its standard input does.
"""

import asyncio
import contextlib
import os
import sys


async def _opened(place: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    kind, _, rest = place.partition(":")
    if kind == "unix":
        return await asyncio.open_unix_connection(rest)
    host, _, port = rest.rpartition(":")
    return await asyncio.open_connection(host, int(port))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


async def relay(listen: str, target: str) -> None:
    """Hand on until standard input ends. Raises OSError where nothing can be listened on."""

    async def taken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            there, away = await _opened(target)
            try:
                await asyncio.gather(_pump(reader, away), _pump(there, writer))
            finally:
                away.close()
        writer.close()

    kind, _, rest = listen.partition(":")
    if kind == "unix":
        server = await asyncio.start_unix_server(taken, rest)
    else:
        host, _, port = rest.rpartition(":")
        server = await asyncio.start_server(taken, host, int(port))
    async with server:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.buffer.read)
        os._exit(0)  # connections that stand end with it


if __name__ == "__main__":
    asyncio.run(relay(sys.argv[1], sys.argv[2]))

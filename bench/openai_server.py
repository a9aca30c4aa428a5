"""What a model of a server elsewhere costs: CPU for each token and each request, over Weft's engine host and directly.

    .venv/bin/python bench/openai_server.py [--streams 1,8,32] [--tokens 400] [--requests 400] [--rounds 3]

The server is llama.cpp's own with the built-in model, in a process of its own. Directly, sockets of this process ask it
and only count; over Weft, a session client asks an engine host, which asks the server. Each process's own CPU time is
read, in turns, as other work on the machine slows all of them.
"""

import argparse
import asyncio
import json
import os
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import weft_tiny
from engine_host import cpu_s, hosted
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import SessionClient
from weft_testing.llamacpp_server import LlamaCppServer

CONTEXT = 1024
Run = Callable[[int, int], Awaitable[None]]
"""Runs so many streams of so many tokens each."""


@dataclass(frozen=True)
class Cost:
    """Microseconds of CPU for each token, or for each request."""

    server: float
    host: float = 0.0
    client: float = 0.0


async def directly(port: int, number: int, tokens: int) -> None:
    """One streamed answer over a socket of its own."""
    body = json.dumps(
        {
            "model": "tiny",
            "stream": True,
            "stream_options": {"include_usage": True},
            "messages": [{"role": "user", "content": f"hello {number}"}],
            "temperature": 0,
            "ignore_eos": True,
            "max_tokens": tokens,
        }
    ).encode()
    head = "POST /v1/chat/completions HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n"
    head += "Content-Type: application/json\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    events = 0
    while data := await reader.read(65536):
        events += data.count(b"data: {")
    writer.close()
    assert events >= tokens, f"{events} events for {tokens} tokens"


async def over_session(client: SessionClient, number: int, tokens: int) -> None:
    """One answer of the engine host."""
    over = asyncio.get_running_loop().create_future()

    def sink(output: pb.Output) -> None:
        if output.finish:
            over.set_result(output)

    request = pb.Submit(max_tokens=tokens, sampling=pb.Sampling(temperature=0, ignore_end=True))
    request.chat.messages.add(role="user", content=f"hello {number}")
    client.submit(request, sink)
    last = await over
    assert last.finish == pb.FINISH_LENGTH, last
    assert last.usage.output_tokens == tokens, last


async def many(one: Callable[[int], Awaitable[None]], count: int, at_once: int) -> None:
    """So many, so many of them at once."""
    numbers = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            await one(number)

    await asyncio.gather(*(worker() for _ in range(at_once)))


async def measured(
    server: LlamaCppServer, streams: int, tokens: int, count: int, *, per_token: bool
) -> tuple[Cost, Cost]:
    """Directly, and over the host."""
    port = int(server.url.rpartition(":")[2].partition("/")[0])
    unit = count * (tokens if per_token else 1) / 1e6

    def straight(number: int) -> Awaitable[None]:
        return directly(port, number, tokens)

    await many(straight, streams, streams)
    before, own = cpu_s(server.pid), time.process_time()
    await many(straight, count, streams)
    direct = Cost((cpu_s(server.pid) - before) / unit, 0.0, (time.process_time() - own) / unit)
    launch = {
        "engine": "openai",
        "context_tokens": CONTEXT,
        "concurrency": streams,
        "engine_args": {"base_url": server.url, "model": "tiny"},
    }
    async with hosted(launch) as (host, client):

        def through(number: int) -> Awaitable[None]:
            return over_session(client, number, tokens)

        await many(through, streams, streams)
        before, at_host, own = cpu_s(server.pid), cpu_s(host), time.process_time()
        await many(through, count, streams)
        over = Cost(
            (cpu_s(server.pid) - before) / unit, (cpu_s(host) - at_host) / unit, (time.process_time() - own) / unit
        )
    return direct, over


def shown(name: str, costs: list[tuple[Cost, Cost]]) -> str:
    """Medians in a row."""

    def median(of: Callable[[tuple[Cost, Cost]], float]) -> float:
        return statistics.median(of(each) for each in costs)

    server, over = median(lambda each: each[0].server), median(lambda each: each[1].server)
    host, client = median(lambda each: each[1].host), median(lambda each: each[1].client)
    socket = median(lambda each: each[0].client)
    return f"{name:28}{server:10.0f}{socket:10.0f}{over:14.0f}{host:10.0f}{client:10.0f}"


async def main() -> None:
    """Measure in turns and print the medians."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--streams", default="1,8,32")
    parser.add_argument("--tokens", type=int, default=400)
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(f"µs of CPU, medians of {options.rounds}; load {os.getloadavg()[0]:.1f}")
    print(f"{'':28}{'directly':>20}{'over Weft':>34}")
    print(f"{'':28}{'server':>10}{'socket':>10}{'server':>14}{'host':>10}{'client':>10}")
    for streams in map(int, options.streams.split(",")):
        model = str(weft_tiny.gguf_path())
        with LlamaCppServer(model, alias="tiny", context=CONTEXT, places=streams) as server:
            tokens, requests = list[tuple[Cost, Cost]](), list[tuple[Cost, Cost]]()
            for _ in range(options.rounds):
                tokens.append(await measured(server, streams, options.tokens, 2 * streams, per_token=True))
                requests.append(await measured(server, streams, 1, options.requests, per_token=False))
            print(shown(f"a token, {streams} at once", tokens))
            print(shown(f"a request, {streams} at once", requests), flush=True)


if __name__ == "__main__":
    asyncio.run(main())

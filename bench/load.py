"""Streams that ask one after another over HTTP, from a process of their own so that their cost is not the mesh's.

    python bench/load.py URL MODEL --streams 32 --seconds 10 --tokens 128

Prints one JSON line: requests, tokens, seconds, and each request's seconds to its first token. `streams.py` and
`router.py` start it.
"""

import argparse
import asyncio
import itertools
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from urllib.parse import urlsplit

QUESTION = "What is the capital of France?"
ANSWER_S = 120.0


@dataclass(slots=True)
class Tally:
    """What came of the requests. Every one runs to its full number of tokens, or the load fails."""

    requests: int = 0
    tokens: int = 0
    seconds: float = 0.0
    first: list[float] = field(default_factory=list[float])


def lengths(tokens: int, stream: int, *, spread: bool) -> Iterator[int]:
    """How long a stream's answers are, one after another; `spread`: half to three halves as long, always the same.

    Answers of one length keep all streams in step: they end, and ask anew, all at once.
    """
    for number in itertools.count():
        yield tokens // 2 + (stream * 37 + number * 53) % (tokens + 1) if spread else tokens


def body(model: str, tokens: int, *, stream: bool) -> bytes:
    """A chat request that is drawn, not greedy, and goes on past the model's own end."""
    asked = {
        "model": model,
        "messages": [{"role": "user", "content": QUESTION}],
        "stream": stream,
        "max_tokens": tokens,
        "temperature": 0.8,
        "ignore_eos": True,
    }
    return json.dumps(asked, separators=(",", ":")).encode()


async def _streamed(reader: asyncio.StreamReader, asked: float) -> float:
    """Read one streamed answer; seconds to the first token."""
    head = await reader.readuntil(b"\r\n\r\n")
    if b" 200 " not in head[:16]:
        raise SystemExit(f"the gateway said {head.decode()}{(await reader.read(2000)).decode()}")
    first, tail = 0.0, b""
    while not tail.endswith(b"\r\n0\r\n\r\n"):
        part = await reader.read(1 << 16)
        if not part:
            raise SystemExit("the gateway closed a stream")
        first = first or time.perf_counter() - asked
        tail = (tail + part)[-512:]
    if b'"finish_reason":"length"' not in tail:
        raise SystemExit(f"an answer ended too early: {tail.decode()}")
    return first


async def _whole(reader: asyncio.StreamReader, asked: float) -> float:
    head = await reader.readuntil(b"\r\n\r\n")
    lines = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if line)
    answer = await reader.readexactly(int(lines[b"content-length"]))
    if b" 200 " not in head[:16]:
        raise SystemExit(f"the gateway said {head.decode()}{answer.decode()}")
    return time.perf_counter() - asked


async def run(
    url: str, model: str, streams: int, seconds: float, tokens: int, *, stream: bool, spread: bool = False
) -> Tally:
    """Keep so many streams busy for so long; what has begun is finished."""
    where = urlsplit(url)
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: {where.netloc}\r\ncontent-type: application/json\r\n"
    tally, began = Tally(), time.perf_counter()

    async def one(number: int) -> None:
        secure = where.scheme == "https" or None  # trusts what SSL_CERT_FILE names
        reader, writer = await asyncio.open_connection(where.hostname, where.port, ssl=secure)
        for length in lengths(tokens, number, spread=spread):
            if time.perf_counter() - began >= seconds:
                break
            sent = body(model, length, stream=stream)
            message = f"{head}content-length: {len(sent)}\r\n\r\n".encode() + sent
            asked = time.perf_counter()
            writer.write(message)
            read = _streamed if stream else _whole
            tally.first.append(await asyncio.wait_for(read(reader, asked), ANSWER_S))
            tally.requests += 1
            tally.tokens += length
        writer.close()

    await asyncio.gather(*(one(number) for number in range(streams)))
    tally.seconds = time.perf_counter() - began
    return tally


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("model")
    parser.add_argument("--streams", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--whole", action="store_true", help="answers in one piece instead of streams")
    parser.add_argument("--spread", action="store_true", help="answers of half to three halves as many tokens")
    given = parser.parse_args()
    found = run(
        given.url,
        given.model,
        given.streams,
        given.seconds,
        given.tokens,
        stream=not given.whole,
        spread=given.spread,
    )
    print(json.dumps(asdict(asyncio.run(found))))

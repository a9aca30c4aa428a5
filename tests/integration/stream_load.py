"""Streams at a steady rate, whatever becomes of them, from a thread of its own; each is judged by its whole answer."""

import asyncio
import json
import threading
from collections import Counter
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import httptools
from weft_testing.story import until

WHOLE_S = 60.0
"""A stream that takes longer hangs."""
SEED = 7


@dataclass(frozen=True, slots=True)
class Ended:
    """How one stream ended."""

    text: str
    finish: str | None
    trouble: str | None
    """What the client saw instead of a whole answer: an error's sentence, a cut, silence."""


class _Answer:
    """Takes a whole HTTP answer apart."""

    def __init__(self, data: bytes) -> None:
        self._parser: Any = httptools.HttpResponseParser(self)
        self.body = b""
        self.whole = False
        self._parser.feed_data(data)
        self.status = int(self._parser.get_status_code())

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.whole = True


def judged(data: bytes) -> Ended:
    """What a stream's answer comes to."""
    if not data:
        return Ended("", None, "the connection was closed without an answer")
    answer = _Answer(data)
    if answer.status != 200:
        return Ended("", None, f"{answer.status}: {answer.body.decode(errors='replace')[:300]}")
    text, finish, error, last = "", None, None, ""
    for line in answer.body.decode().splitlines():
        if not line.startswith("data: "):
            continue
        last = line.removeprefix("data: ")
        if last == "[DONE]":
            break
        chunk = json.loads(last)
        if "error" in chunk:
            error = chunk["error"]["message"]
            continue
        choice = chunk["choices"][0]
        text += choice["delta"].get("content") or ""
        finish = choice["finish_reason"] or finish
    if not answer.whole or last != "[DONE]":
        return Ended(text, finish, "cut off")
    return Ended(text, finish, error)


class StreamLoad:
    """`per_second` new streams of so many tokens; a context that ends when the last of them has.

    They are drawn with one seed: all say the same, and no replica could go on with another's.
    """

    def __init__(self, url: str, model: str, *, per_second: float, tokens: int) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 80
        body = json.dumps(
            {
                "model": model,
                "messages": [{"role": "user", "content": "Tell me a story."}],
                "max_tokens": tokens,
                "temperature": 1,
                "seed": SEED,
                "ignore_eos": True,
                "stream": True,
            }
        ).encode()
        head = (
            f"POST /v1/chat/completions HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\n"
            f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self._request = head.encode() + body
        self._pause = 1 / per_second
        self._ending = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self.ended: list[Ended] = []
        self.most_at_once = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finish()

    def begin_no_more(self) -> None:
        """What runs goes on."""
        self._ending.set()

    def finish(self) -> list[Ended]:
        """Begin no more; how each ended."""
        self._ending.set()
        self._thread.join(WHOLE_S + 30)
        assert not self._thread.is_alive()
        return self.ended

    @property
    def troubles(self) -> Counter[str]:
        """What went wrong, and how often; a text that is another than most is trouble too."""
        whole = Counter(each.text for each in self.ended if each.trouble is None)
        usual = whole.most_common(1)[0][0] if whole else ""
        found = Counter(each.trouble for each in self.ended if each.trouble is not None)
        found.update({f"another text: {text[-80:]}": count for text, count in whole.items() if text != usual})
        return found

    def goes_on(self, streams: int) -> None:
        """Wait until so many more have ended."""
        wanted = len(self.ended) + streams
        until(f"{streams} more streams end", lambda: len(self.ended) >= wanted, WHOLE_S)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        streams: set[asyncio.Task[None]] = set()
        due = loop.time()
        while not self._ending.is_set():
            task = asyncio.create_task(self._stream())
            streams.add(task)
            task.add_done_callback(streams.discard)
            self.most_at_once = max(self.most_at_once, len(streams))
            due += self._pause
            await asyncio.sleep(max(0.0, due - loop.time()))
        await asyncio.gather(*streams)

    async def _stream(self) -> None:
        data = bytearray()
        trouble: str | None = None
        writer: asyncio.StreamWriter | None = None
        try:
            async with asyncio.timeout(WHOLE_S):
                reader, writer = await asyncio.open_connection(self._host, self._port)
                writer.write(self._request)
                while piece := await reader.read(65536):
                    data += piece
        except TimeoutError:
            trouble = f"not done after {WHOLE_S:g} s"
        except OSError as error:
            trouble = f"the connection broke: {error!r}"
        finally:
            if writer is not None:
                writer.close()
        ended = judged(bytes(data))
        self.ended.append(ended if trouble is None else Ended(ended.text, ended.finish, trouble))

"""People who ask a mesh of several gateways at a steady rate, as a balancer in front of them would have them do: who
is refused a connection, is hung up on before the first byte of an answer, or is told that the gateway stops or starts,
asks the next one. Each is asked twice at most: who is late may meet one before it listens and the other as it stops.
"""

import asyncio
import itertools
import json
import ssl
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import httpx

from weft_testing.story import until

ROUNDS = 2
WHOLE_S = 60.0
"""A stream that takes longer hangs."""
_NOT_TAKEN = (httpx.ConnectError, httpx.ConnectTimeout, httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)
"""Before any byte of an answer: the gateway never had the request, or is ending."""
_ELSEWHERE = ("stopping", "starting")
"""What a gateway says of itself that had the request and did nothing with it."""


@dataclass(frozen=True, slots=True)
class Stream:
    """How one stream ended."""

    began: float
    """When it was asked for, on the monotonic clock."""
    first_s: float
    """Seconds to the first word, further tries included; infinity: none came."""
    doors: int
    """How often it was sent to a gateway."""
    text: str
    trouble: str | None
    """What its client saw instead of a whole answer."""


class FrontDoors:
    """`per_second` new streams, at the gateways by turns; a context that ends when the last stream has."""

    def __init__(
        self, urls: Sequence[str], body: Mapping[str, Any], *, per_second: float, trust: ssl.SSLContext, key: str
    ) -> None:
        """`body`: of the chat request, which is made a stream."""
        self._urls = [f"{url}/v1/chat/completions" for url in urls]
        self._body = json.dumps({**body, "stream": True}).encode()
        self._headers = {
            "authorization": f"Bearer {key}",
            "connection": "close",
            "content-type": "application/json",
        }
        self._trust = trust
        self._pause = 1 / per_second
        self._ending = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self.ended: list[Stream] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        self._thread.join(WHOLE_S + 30)
        assert not self._thread.is_alive(), "a stream hangs"

    @property
    def troubles(self) -> Counter[str]:
        """What went wrong, and how often; a text that is another than most is trouble too."""
        ended = list(self.ended)
        found = Counter(each.trouble for each in ended if each.trouble is not None)
        whole = Counter(each.text for each in ended if each.trouble is None)
        for text, count in whole.most_common()[1:]:
            found[f"another text: {text[-80:]}"] = count
        return found

    def goes_on(self, streams: int) -> None:
        """Wait until so many more have ended."""
        wanted = len(self.ended) + streams
        until(f"{streams} more streams end", lambda: len(self.ended) >= wanted, WHOLE_S)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        turns = itertools.count()
        due = loop.time()
        async with (
            httpx.AsyncClient(verify=self._trust, timeout=WHOLE_S, headers=self._headers) as client,
            asyncio.TaskGroup() as streams,
        ):
            while not self._ending.is_set():
                streams.create_task(self._stream(client, next(turns)))
                due += self._pause
                await asyncio.sleep(max(0.0, due - loop.time()))

    async def _stream(self, client: httpx.AsyncClient, turn: int) -> None:
        began, words, trouble, door = time.monotonic(), _Words(), None, 0
        for door in range(ROUNDS * len(self._urls)):
            trouble, words = None, _Words()
            try:
                async with asyncio.timeout(WHOLE_S):
                    await self._ask(client, self._urls[(turn + door) % len(self._urls)], words)
                if not words.elsewhere:
                    break
            except TimeoutError:
                trouble = f"not done after {WHOLE_S:g} s"
                break
            except _NOT_TAKEN as error:
                trouble = f"{'cut off' if words.answered else 'not taken'}: {type(error).__name__} {error}"
                if words.answered:
                    break
        first = words.first_at - began if words.first_at else float("inf")
        self.ended.append(Stream(began, first, door + 1, words.text, trouble or words.trouble))

    async def _ask(self, client: httpx.AsyncClient, url: str, words: "_Words") -> None:
        async with client.stream("POST", url, content=self._body) as response:
            words.answered = True
            if response.status_code != 200:
                said = (await response.aread()).decode(errors="replace")
                words.elsewhere = response.status_code == 503 and any(f'"code":"{each}"' in said for each in _ELSEWHERE)
                words.trouble = f"{response.status_code}: {said[:300]}"
                return
            async for line in response.aiter_lines():
                words.hear(line)
        words.end()


class _Words:
    """What came of one answer."""

    def __init__(self) -> None:
        self.answered = False
        self.elsewhere = False
        """It was told to send its request again."""
        self.first_at = 0.0
        self.text = ""
        self.trouble: str | None = None
        self._finish: str | None = None
        self._done = False

    def hear(self, line: str) -> None:
        said = line.removeprefix("data: ")
        if said == line:
            return
        if said == "[DONE]":
            self._done = True
            return
        chunk = json.loads(said)
        if "error" in chunk:
            self.trouble = chunk["error"]["message"]
            return
        for choice in chunk["choices"]:
            piece = choice["delta"].get("content") or ""
            if piece and not self.first_at:
                self.first_at = time.monotonic()
            self.text += piece
            self._finish = choice["finish_reason"] or self._finish

    def end(self) -> None:
        if self.trouble is None and not (self._done and self._finish):
            self.trouble = f"it ended without its end, after {len(self.text)} characters"

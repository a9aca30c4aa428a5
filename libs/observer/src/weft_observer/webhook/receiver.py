"""The receiver of the posts: what it answers, and what that means for a fact."""

import asyncio
import json
import time
from typing import Any
from urllib.parse import urlsplit

import httpx

from weft_observer.happened import Happened
from weft_observer.outcomes import Later, Refused
from weft_observer.webhook.settings import WebhookSettings

ABOUT_THE_FACT = frozenset(range(400, 500)) - {401, 402, 403, 404, 407, 408, 421, 423, 425, 429}
"""Answers that the same post would get again: the fact is a dead letter. All others but 2xx may be mended at either
end, so it is tried again."""
_MOST_ANSWER = 16 * 1024
"""Bytes that are read of an answer, so that its connection serves for the next post."""


class Receiver:
    """One receiver, on one connection. Of the environment it takes nothing: no proxy, no password of a file."""

    def __init__(self, settings: WebhookSettings) -> None:
        """Raises BadSetting."""
        self._url = settings.webhook_url
        self._host = urlsplit(settings.webhook_url).hostname
        self._timeout = settings.webhook_timeout
        self._signer = settings.signer()
        self._http = httpx.AsyncClient(
            verify=settings.verify(),
            follow_redirects=False,
            timeout=settings.webhook_timeout,
            limits=httpx.Limits(max_connections=1),
            trust_env=False,
        )

    async def close(self) -> None:
        """End its connection."""
        await self._http.aclose()

    async def post(self, happened: Happened) -> None:
        """Post one fact. Raises Later and Refused."""
        content = json.dumps(body(happened), separators=(",", ":")).encode()
        headers = self._signer.headers(happened.id, int(time.time()), content)
        try:
            async with asyncio.timeout(self._timeout):
                status, after = await self._answer(content, headers)
        except TimeoutError:
            raise Later(f"{self._host} does not answer within {self._timeout:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise Later(f"{self._host} can't be reached: {type(error).__name__} {error}") from None
        if 200 <= status < 300:
            return
        if status in ABOUT_THE_FACT:
            raise Refused(f"{self._host} answers {status}")
        if 300 <= status < 400:
            raise Later(f"{self._host} answers {status}: no redirect is followed, name where it leads")
        raise Later(f"{self._host} answers {status}", after)

    async def _answer(self, content: bytes, headers: dict[str, str]) -> tuple[int, float]:
        """Its status, and the seconds after which it wants to be asked again."""
        sent = {"content-type": "application/json", "user-agent": "weft-observer", **headers}
        async with self._http.stream("POST", self._url, content=content, headers=sent) as answer:
            read = 0
            async for chunk in answer.aiter_raw():
                read += len(chunk)
                if read > _MOST_ANSWER:
                    break
            after = answer.headers.get("retry-after", "")
            return answer.status_code, float(after) if after.isascii() and after.isdigit() else 0.0


def body(happened: Happened) -> dict[str, Any]:
    """What is posted: type, time and data, as the convention advises."""
    data = happened.document()
    return {"type": happened.name, "timestamp": data["at"], "data": data}

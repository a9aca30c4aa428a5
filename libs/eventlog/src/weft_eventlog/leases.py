"""Whose leases were renewed lately, read from the stream that keeps the last of each.

However often one was renewed since the last look, it is told once: who floods costs the server, and nobody who looks.
"""

import asyncio
import json
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.errors import Error as JetStreamError
from weft_contracts.topology import LEASES

from weft_eventlog.errors import LogUnavailable, unavailable
from weft_eventlog.quick_headers import use_quick_headers

_READ = f"$JS.API.DIRECT.GET.{LEASES.name}"
_PAGE = 4096
_PAGES = 100
_WAIT_S = 2.0
_NOTHING = "404"
_END = "204"


class Leases:
    """One reader of the leases below a filter. Cost: 20 µs a renewed lease, and two messages a look."""

    def __init__(self, client: Client, filter: str) -> None:
        use_quick_headers(client)
        self._client = client
        self._js = client.jetstream(timeout=_WAIT_S)
        self._filter = filter
        self._last: int | None = None

    def anew(self) -> None:
        """Take nothing that stands there now for a renewal: the server or its stream may be another one."""
        self._last = None

    async def renewed(self) -> list[str]:
        """The subjects of the leases that were renewed since the last call; the first one only takes its stand.

        Raises LogUnavailable.
        """
        with unavailable("the leases can't be read"):
            if self._last is None:
                self._last = int((await self._js.stream_info(LEASES.name)).state.last_seq)
                return []
            found: list[str] = []
            for _ in range(_PAGES):
                page, left = await self._page(self._last + 1)
                found += page
                if not left:
                    break
            return found

    async def _page(self, first: int) -> tuple[list[str], bool]:
        """Renewals from a sequence on, and whether there are more."""
        subjects: list[str] = []
        ended: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        async def take(message: Msg) -> None:
            headers: dict[str, Any] = message.headers or {}
            status = headers.get("Status")
            if status is None and "Nats-Sequence" in headers:
                self._last = max(self._last or 0, int(headers["Nats-Sequence"]))
                subjects.append(headers["Nats-Subject"])
            elif ended.done():
                return
            elif status in (_NOTHING, _END):
                ended.set_result(int(headers.get("Nats-Num-Pending", 0)) > 0)
            else:
                ended.set_exception(JetStreamError(f"{status} {headers.get('Description', '')}"))

        inbox = self._client.new_inbox()
        subscription = await self._client.subscribe(inbox, cb=take)
        asked = {"seq": first, "next_by_subj": self._filter, "batch": _PAGE}
        try:
            await self._client.publish(_READ, json.dumps(asked).encode(), reply=inbox)
            async with asyncio.timeout(_WAIT_S):
                return subjects, await ended
        except TimeoutError as error:
            raise LogUnavailable(f"the leases are not told within {_WAIT_S:g} s") from error
        finally:
            await subscription.unsubscribe()

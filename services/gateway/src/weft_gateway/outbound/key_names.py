"""Names of API keys, which the log knows by opaque ids: kept where they can be erased, in the bucket `people`."""

from collections.abc import Iterable

from weft_eventlog import LogUnavailable
from weft_eventlog.people import erase_name, get_names, put_name
from weft_runtime.service import Runtime

from weft_gateway.outbound.changes import away


class KeyNames:
    """Every call raises Refused, 503, while the log's server is away."""

    def __init__(self, runtime: Runtime) -> None:
        self._client = runtime.client

    async def of(self, ids: Iterable[str]) -> dict[str, str]:
        """The names that are kept for some ids."""
        self._check()
        try:
            return await get_names(self._client, ids)
        except LogUnavailable:
            raise away() from None

    async def known(self, ids: Iterable[str]) -> dict[str, str]:
        """The same for a list, which is worth having without its names: none while they can't be read."""
        if not self._client.is_connected:
            return {}
        try:
            return await get_names(self._client, ids)
        except LogUnavailable:
            return {}

    async def put(self, id: str, name: str) -> None:
        """Keep a name."""
        self._check()
        try:
            await put_name(self._client, id, name)
        except LogUnavailable:
            raise away() from None

    async def erase(self, id: str) -> None:
        """Keep none any more."""
        self._check()
        try:
            await erase_name(self._client, id)
        except LogUnavailable:
            raise away() from None

    def _check(self) -> None:
        if not self._client.is_connected:
            raise away()

"""Whose leases were renewed lately, read from the stream that keeps the last of each."""

from nats.aio.client import Client
from weft_contracts.topology import LEASES

from weft_eventlog.last_values import LastValues


class Leases:
    """One reader of the leases below a filter; see `LastValues`."""

    def __init__(self, client: Client, filter: str) -> None:
        self._values = LastValues(client, LEASES, filter, "leases")

    def anew(self) -> None:
        """Take nothing that stands there now for a renewal: the server or its stream may be another one."""
        self._values.anew()

    async def renewed(self) -> list[str]:
        """The subjects of the leases that were renewed since the last call; the first one only takes its stand.

        Raises LogUnavailable.
        """
        return [each.subject for each in await self._values.said()]

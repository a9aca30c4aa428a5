"""The event log as the gateway hands it out: pages of JSON."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from weft_client import routes
from weft_client.gateway import Gateway

if TYPE_CHECKING:
    from weft_api import Commit


def pages(gateway: Gateway, after: int = 0) -> "Iterator[list[Commit]]":
    """Pages of events as JSON, from behind a position up to the log's present end."""
    while True:
        answer = routes.commits(gateway, after)
        if answer["items"]:
            yield answer["items"]
        if answer["next"] is None:
            return
        after = answer["next"]

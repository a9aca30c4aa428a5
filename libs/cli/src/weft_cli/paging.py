"""Lists that the gateway gives in pages, whole."""

from typing import Any

from weft_cli.client import Gateway

_PAGE = 1000
"""The most that a page holds."""


def all_of(gateway: Gateway, path: str) -> list[dict[str, Any]]:
    """Every item of a list, page by page."""
    found: list[dict[str, Any]] = []
    after: dict[str, str | int] = {}
    while True:
        page = gateway.get(path, limit=_PAGE, **after)
        found += page["items"]
        if page["next"] is None:
            return found
        after = {"after": str(page["next"])}

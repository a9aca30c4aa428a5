"""The routes of the admin API about models' files, each with the type of its answer."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from weft_client.gateway import Gateway
from weft_client.routes import all_items

if TYPE_CHECKING:  # types alone: a command need not wait for what defines them
    from weft_api import FilesFetched, FilesKept, FilesRemoved, ModelFiles


def files(gateway: Gateway) -> "Iterator[ModelFiles]":
    """Where models' files lie that nodes fetch."""
    return all_items(gateway, "/api/files")


def fetch_files(gateway: Gateway, body: Mapping[str, Any]) -> "FilesFetched":
    """Nodes are to have a model's files, and to keep them."""
    return gateway.post("/api/files/fetch", body)


def pin_files(gateway: Gateway, body: Mapping[str, Any]) -> "FilesFetched":
    """Nodes are to keep files that they have."""
    return gateway.post("/api/files/pin", body)


def unpin_files(gateway: Gateway, body: Mapping[str, Any]) -> "FilesKept":
    """Nodes keep files no longer than they need them."""
    return gateway.post("/api/files/unpin", body)


def remove_files(gateway: Gateway, body: Mapping[str, Any]) -> "FilesRemoved":
    """Nodes remove files once nothing there uses them."""
    return gateway.post("/api/files/remove", body)

"""Answers about what nodes do now, as they said last: installs, fetches, loads, memory. Nothing is decided by it."""

from typing_extensions import TypedDict
from weft_contracts.facts.values import EngineName, Vendor
from weft_contracts.signals import FetchPhase, InstallPhase


class InstallProgress(TypedDict):
    """An engine that a node installs; `about` says it in words. Null: not known. `since_s`: seconds since it was asked
    for; `left_s`: an estimate of what fetching still takes; `overdue`: longer than this node's operator finds right."""

    engine: EngineName
    version: str
    vendor: Vendor
    phase: InstallPhase
    package: str | None
    fetched: int | None
    total: int | None
    left_s: float | None
    since_s: float
    overdue: bool
    about: str


class FetchProgress(TypedDict):
    """Bytes of a model's files that a node has fetched from `source`, and of all of them; `rate`: bytes a second of
    late, `left_s`: an estimate; null: not known."""

    node: str
    phase: FetchPhase
    source: str
    file: str | None
    fetched: int
    total: int
    rate: float | None
    left_s: float | None
    about: str


class LoadProgress(TypedDict):
    """Bytes of a model's files that an engine has taken, and of all of them; `left_s`: an estimate, null: none."""

    node: str
    taken: int
    total: int
    left_s: float | None
    about: str


class DeviceUse(TypedDict):
    """A device that a replica claims bytes of, and the bytes that its processes hold there; null: not known."""

    node: str
    node_name: str
    index: int
    name: str
    claimed: int
    used: int | None


class ReplicaProgress(TypedDict):
    """What a replica waits for, and what it holds. `about`: what it waits for in words; empty: for nothing."""

    about: str
    install: InstallProgress | None
    fetch: FetchProgress | None
    load: LoadProgress | None
    devices: list[DeviceUse]

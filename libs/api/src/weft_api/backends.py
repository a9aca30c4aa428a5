"""Answers about backends: what nodes have and are getting, and how engines are installed. Sizes are bytes."""

from typing import Literal

from typing_extensions import TypedDict
from weft_contracts.facts.values import EngineName, Vendor

from weft_api.progress import InstallProgress
from weft_api.values import Backend


class BackendInstall(TypedDict):
    """An install for a replica that waits for it. `last_end`: why the last try failed; null: none did."""

    replica: str
    model_name: str
    engine: EngineName
    since: float
    last_end: str | None


class InstalledBackend(TypedDict):
    """An environment that a node made for an engine; versions may lie side by side.

    `unused_since`: null: it is used; `leaves`: it is to go once nothing uses it.
    """

    name: str
    engine: EngineName
    vendor: Vendor
    version: str
    bytes: int | None
    used_by: list[str]
    unused_since: float | None
    leaves: bool


class WantedBackend(TypedDict):
    """What a node is to have ahead of need. `fault`: why it could not be installed; `final`: until it is asked anew."""

    engine: EngineName
    vendor: Vendor
    version: str
    here: bool
    fault: str | None
    final: bool


class NodeBackends(TypedDict):
    """One node's. `allowed`: whether it may install any; `disk_free`: of the disk that takes them; null: not known.

    `installed` is what engines can be started with, `environments` what was installed for that; `installing`: replicas
    that wait; `installs`: what the node itself says that it installs, for whomever.
    """

    node: str
    node_name: str
    allowed: bool | None
    disk_free: int | None
    installed: list[Backend]
    installing: list[BackendInstall]
    environments: list[InstalledBackend]
    wanted: list[WantedBackend]
    installs: list[InstallProgress]


class NodeBackendsPage(TypedDict):
    """Nodes by id, and the cursor of the next page."""

    items: list[NodeBackends]
    next: str | None


class SystemNeed(TypedDict):
    """Something of the system that is looked for before anything is installed; `say` is told where it is not there."""

    kind: Literal["library", "device"]
    name: str
    say: str


class SourceBuild(TypedDict):
    """How a package is built on a node: options of its build, variables set to 1, what builds it, what that needs."""

    cmake: dict[str, bool]
    switches: list[str]
    requirements: list[str]
    hashes: dict[str, list[str]]
    tools: list[str]


class BackendVariant(TypedDict):
    """What is installed for an engine on one vendor's devices; see contracts' BackendVariant."""

    vendor: Vendor
    package: str
    version: str
    requirements: list[str]
    constraints: list[str]
    excludes: list[str]
    hashes: dict[str, list[str]]
    locked: bool
    find_links: bool
    build: str
    driver_least: str
    driver_below: str
    disk: int
    needs: list[SystemNeed]
    source: SourceBuild | None


class BackendRecipe(TypedDict):
    """How an engine is installed. `builtin`: as Weft's own catalogue says."""

    engine: EngineName
    builtin: bool
    variants: list[BackendVariant]


class BackendRecipePage(TypedDict):
    """Recipes by engine, and the cursor of the next page."""

    items: list[BackendRecipe]
    next: str | None

"""What must be installed so that an engine runs on a vendor's devices: all of it data, none of it an order.

An entry may come from a file that somebody wrote. So nothing in it is a path, an address, an option or a command: a
requirement is a name with versions, and whatever else it could say to an installer is refused with a sentence.
"""

import functools
import hashlib
import json
import re
from typing import Annotated, Literal

from pydantic import Field

from weft_contracts.backends.source_build import SourceBuild
from weft_contracts.backends.vocabulary import (
    Build,
    Distribution,
    DriverVersion,
    Hash,
    Requirement,
    Sentence,
    Thing,
    Version,
)
from weft_contracts.facts.fact import Count, Value
from weft_contracts.facts.values import EngineName, Vendor

MOST_BYTES = 16 * 1024
"""Of a recipe, as JSON: it stands in every service's memory, and a part of it in assignments."""


class SystemNeed(Value, frozen=True):
    """Something that must be there before anything is installed, because an installer of packages can't bring it."""

    kind: Literal["library", "device"]
    """A shared library that the loader finds; a device file that the worker may read and write."""
    name: Thing
    say: Sentence
    """Told to people where it is not there: what to install or set."""


class BackendVariant(Value, frozen=True):
    """What is installed for an engine on one vendor's devices."""

    vendor: Vendor
    package: Distribution
    """The distribution whose version is the engine's."""
    version: Version
    requirements: Annotated[tuple[Requirement, ...], Field(min_length=1, max_length=64)]
    constraints: Annotated[tuple[Requirement, ...], Field(max_length=256)] = ()
    """Versions of what is installed with them, if it is."""
    excludes: Annotated[tuple[Distribution, ...], Field(max_length=64)] = ()
    """Never installed, whatever asks for them."""
    hashes: dict[Requirement, Annotated[tuple[Hash, ...], Field(min_length=1, max_length=64)]] = Field(
        default_factory=dict[str, tuple[str, ...]]
    )
    """Of what the requirements of these texts bring: each of one version."""
    locked: bool = False
    """Everything stands in the requirements with its hashes, and nothing else is installed for the engine."""
    find_links: bool = True
    """Whether the operator's find-links are looked at: what lies there may be made for another vendor."""
    build: Build = ""
    """What the version's local part begins with, such as `rocm` of `0.32.0+rocm721`: a build that the public index has
    not, so that the operator must name an index or a folder that has it. Empty: any will do."""
    driver_least: DriverVersion = ""
    driver_below: DriverVersion = ""
    """Of the devices' driver: at least, and less than; empty: any."""
    disk: Count
    """Bytes that it takes."""
    needs: Annotated[tuple[SystemNeed, ...], Field(max_length=16)] = ()
    source: SourceBuild | None = None
    """How `package` is built on the node, where no index has it built for these devices; None: nothing is built."""

    def __hash__(self) -> int:
        return hash((self.vendor, self.package, self.version))

    @property
    def digest(self) -> str:
        """16 hex digits over all of it but what is as by default."""
        return _digest(self)


class BackendRecipe(Value, frozen=True):
    """How an engine is installed, for each vendor that it can be installed for."""

    engine: EngineName
    variants: Annotated[tuple[BackendVariant, ...], Field(min_length=1, max_length=16)]

    def __hash__(self) -> int:
        return hash(self.engine)

    def for_driver(self, vendor: Vendor, driver: str | None) -> BackendVariant | None:
        """The first variant for a device of this vendor with this driver; None: there is none."""
        return next((v for v in self.variants if v.vendor == vendor and drives(v, driver)), None)


def drives(variant: BackendVariant, driver: str | None) -> bool:
    """Whether a driver is in a variant's range. One that is not known is taken to be."""
    if driver is None or not (variant.driver_least or variant.driver_below):
        return True
    own = numbers(driver)
    least, below = numbers(variant.driver_least), numbers(variant.driver_below)
    return (not least or own >= least) and (not below or own < below)


def numbers(version: str) -> tuple[int, ...]:
    """A driver's version as numbers: `575.51.03` is later than `575.9`."""
    return tuple(int(part) for part in re.findall(r"\d{1,9}", version)[:6])


@functools.lru_cache(maxsize=256)
def _digest(variant: BackendVariant) -> str:
    body = variant.model_dump(mode="json", exclude_defaults=True)
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]

"""Which version of each fact is written, and who reads it.

Every reader comes first: a version above 1 is written only after a `format_raised` of its fact, which the registry
appends once everybody who lives reads it (`weft upgrade finish`). A mesh is founded with all of them raised.
"""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from weft_contracts.catalogue import CATALOGUE
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.mesh import FormatRaised

READS: Mapping[str, int] = MappingProxyType(
    {f"{entry.kind}.{entry.type}": entry.version for entry in CATALOGUE if entry.version > 1}
)
"""The facts that this code reads in versions above 1, each with the newest one."""
FORMATS: int = sum(version - 1 for version in READS.values())
"""How many versions above 1 this code reads, all facts together: it only grows from release to release, so who has as
many reads as much."""
_WORKERS = ("node.", "machine.", "run.", "inspection.")
WORKERS_READ: Mapping[str, int] = MappingProxyType(
    {fact: version for fact, version in READS.items() if fact.startswith(_WORKERS)}
)
"""Those of them that stand in a worker's part of the log."""
_SAID_SINCE: Mapping[int, str] = MappingProxyType(
    {
        2: "lists and objects among an engine's arguments",
        3: "LoRA adapters",
        4: "models that workers fetch",
        5: "a layout over devices, and replicas over several nodes",
    }
)
"""What a version first says, for people."""
_NAMED = re.compile(r"([a-z-]+)(?: formats=([0-9]{1,9}))?")


def lacking(reads: Mapping[str, int], wanted: Mapping[str, int] = READS) -> list[str]:
    """What somebody can't read of what is wanted, as `<kind>.<type>`."""
    return [fact for fact, version in wanted.items() if reads.get(fact, 1) < version]


def after(raised: Mapping[str, int], fact: FormatRaised) -> Mapping[str, int]:
    """What may be written after this fact: versions are never taken back."""
    return {**raised, fact.fact: max(fact.version, raised.get(fact.fact, 1))}


def outdated(raised: FormatRaised) -> str | None:
    """Why this code is too old for a log that holds this fact, for people; None where it reads what was raised."""
    reads = READS.get(raised.fact, 1)
    if raised.version <= reads:
        return None
    return (
        f"the mesh's upgrade to a later release is finished: {raised.fact} may be written in version {raised.version}, "
        f"and this release reads it up to {reads}: upgrade it, there is no way back"
    )


def unwritable(fact: Fact, raised: Mapping[str, int]) -> str | None:
    """Why a fact must not be written yet, for people; None where it may."""
    name = f"{fact.kind}.{fact.type}"
    if fact.v <= raised.get(name, 1):
        return None
    what = _SAID_SINCE[min(fact.v, max(_SAID_SINCE))]
    return f"{what} wait until the whole mesh reads them: upgrade what is older, then `weft upgrade finish`"


def connection_name(service: str) -> str:
    """What a service calls its connection, so that the registry hears from the server what it reads.

    Those from before there were versions give their name alone. It is short: it stands in one line with the token.
    """
    return f"{service} formats={FORMATS}"


def reader(name: str, services: Iterable[str]) -> tuple[str, int] | None:
    """The service of a connection of this name, and the `FORMATS` of its code; None where it is somebody else's."""
    found = _NAMED.fullmatch(name)
    if found is None or found.group(1) not in services:
        return None
    return found.group(1), int(found.group(2) or 0)

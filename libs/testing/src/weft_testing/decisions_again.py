"""The decisions of a story's mesh, computed again from its log before the mesh ends."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import httpx
from weft_contracts.commit import Recorded

from weft_testing.log_pages import commits

DECISIONS = Counter[str]()
"""How many of each kind this process has computed again, and of how many `meshes`."""
Verify = Callable[[Sequence[Recorded]], tuple[Mapping[str, int], Sequence[str]]]
"""How many decisions of each kind a log has, and a sentence for each that comes out otherwise."""
SERVICES: list[Verify] = []
"""What computes the decisions of single services: put here by tests, since libraries know no service."""


def decide_again(client: httpx.Client, url: str) -> None:
    """Compute all of them again, where the gateway answers and hands the log out. Raises AssertionError for one that
    comes out otherwise."""
    from weft_placement.verify import verify  # every test's process imports this module, few need that

    try:
        log = list(commits(client, url))
    except (httpx.HTTPError, OSError):
        return  # a story that ended its gateway, or keeps its log from who has no key
    found = verify(log)
    DECISIONS.update(found.decisions)
    DECISIONS["meshes"] += 1
    mismatches = [f"{each.replica} at {each.sequence}: {each.what}" for each in found.mismatches]
    for verified in SERVICES:
        counts, others = verified(log)
        DECISIONS.update(counts)
        mismatches += others
    told = "\n".join(mismatches[:5])
    assert not mismatches, f"{len(mismatches)} decisions of the log come out otherwise:\n{told}"

"""Nodes to avoid: an earlier replica failed there, or an admin took the model off."""

from collections.abc import Iterable, Mapping

REASON = "is avoided: an earlier replica failed, was unloaded or runs there"


def avoided(avoid: Iterable[str]) -> Mapping[str, str]:
    """The nodes that a replica was told to avoid, each with its reason.

    The one filter that looks at the replica and not at its revision, so it is laid over the others' answers.
    """
    return dict.fromkeys(avoid, REASON)

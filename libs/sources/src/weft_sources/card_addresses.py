"""Where a small file of a model may be asked for, at nodes and at the model's source, and why none gave it."""

from collections.abc import Iterable
from dataclasses import dataclass

from weft_contracts.certificates import node_role, server_name
from weft_contracts.ids import NodeId
from weft_files.address import Address
from weft_files.faults import NotFetched

from weft_sources.elsewhere import addresses_elsewhere, is_denied
from weft_sources.refused import SourceRefused
from weft_sources.settings import SourceSettings

_MOST_TOLD = 4
"""Tries, the last ones."""


@dataclass(frozen=True, slots=True)
class AtSource:
    """`refused`: why a source isn't asked, in sentences."""

    addresses: tuple[Address, ...]
    refused: tuple[str, ...]


def at_node(node: NodeId, name: str, host: str, port: int, path: str, *, secure: bool) -> Address:
    """At a node's own server, which stands at `host` and `port` by the log. `path` begins with a slash; `secure`: over
    TLS, where the node must show its own certificate."""
    authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    url = f"{'https' if secure else 'http'}://{authority}{path}"
    return Address(url, node=server_name(node_role(node)), said=f"node {name}")


def at_source(elsewhere: Iterable[str], size: int, settings: SourceSettings) -> AtSource:
    """At each place where a card says that a file lies besides its nodes (`CardFile.elsewhere`). `size`: bytes; 0: not
    known. Blocks."""
    found: list[Address] = []
    refused: list[str] = []
    for key in elsewhere:
        try:
            found += addresses_elsewhere(key, size, settings)
        except SourceRefused as error:
            refused.append(str(error))
    return AtSource(tuple(found), tuple(refused))


def why_away(what: str, error: NotFetched, refused: Iterable[str], who: str) -> str:
    """One sentence: what can't be had, and why none of those who were asked gave it. `who` asked: of what is gated it
    is said that it has no right to it, and what would help."""
    tries = [f"{said} {_gated(who) if is_denied(why) else why}" for said, why in error.tries[-_MOST_TOLD:]]
    return f"{what} can't be had: {'; '.join((*tries, *refused)) or error}"


def _gated(who: str) -> str:
    return (
        f"is gated or private, and {who} has no right to it: have the model's workers offer it themselves "
        f"(WEFT_METADATA_SELF_HOST), or give {who} a right to it (HF_TOKEN, AWS_ACCESS_KEY_ID)"
    )

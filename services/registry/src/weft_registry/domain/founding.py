"""The mesh's first facts: that it exists, and the token that its launcher made for itself."""

from dataclasses import dataclass

from weft_contracts.commit import Cause, Commit, Decision, Guard
from weft_contracts.facts.mesh import Founded
from weft_contracts.facts.token import Created
from weft_contracts.ids import CorrelationId, TokenId
from weft_contracts.subjects import MESH
from weft_contracts.subjects import token as token_of

from weft_registry.domain.state import RegistryState


@dataclass(frozen=True, slots=True)
class BootstrapToken:
    """A token given by settings: its id and the SHA-256 of its secret. Its nodes are approved at once."""

    id: TokenId
    hash: str


def found(state: RegistryState, version: str, token: BootstrapToken | None) -> list[Decision]:
    """What a new log lacks."""
    cause = Cause(CorrelationId("founding"))
    decisions: list[Decision] = []
    if not state.founded:
        guard = Guard(MESH, state.mesh_sequence)
        decisions.append(Decision((Commit(MESH, (Founded(version=version),), guard, cause),), "the mesh is founded"))
    if token is not None and token.id not in state.tokens.by_id:
        aggregate = token_of(token.id)
        created = Created(hash=token.hash, approves=True)
        decisions.append(
            Decision((Commit(aggregate, (created,), Guard(aggregate, 0), cause),), "the launcher's own token")
        )
    return decisions

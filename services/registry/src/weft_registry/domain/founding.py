"""The mesh's first facts: that it exists, and the token that its launcher made for itself."""

from dataclasses import dataclass

from weft_contracts.commit import Cause, Commit, Decision, Guard
from weft_contracts.facts.mesh import Founded
from weft_contracts.facts.token import Bound, Created, TokenFact
from weft_contracts.ids import CorrelationId, TokenId
from weft_contracts.subjects import MESH
from weft_contracts.subjects import token as token_of

from weft_registry.domain.state import RegistryState
from weft_registry.domain.upgrade import unraised


@dataclass(frozen=True, slots=True)
class BootstrapToken:
    """A token given by settings: its id and the SHA-256 of its secret. Its nodes are approved at once."""

    id: TokenId
    hash: str
    keys: tuple[str, ...] | None = None
    """The public keys of the nodes that it is for, in order; None: whoever has it."""
    nodes: int | None = None
    """So many nodes it approves; whoever joins with it beyond them waits for an admin. None: all."""


def found(state: RegistryState, version: str, token: BootstrapToken | None) -> list[Decision]:
    """What a new log lacks."""
    cause = Cause(CorrelationId("founding"))
    decisions: list[Decision] = []
    if not state.founded:
        guard = Guard(MESH, state.mesh_sequence)
        facts = (Founded(version=version), *unraised(state))  # nobody older is here
        decisions.append(Decision((Commit(MESH, facts, guard, cause),), "the mesh is founded"))
    if token is not None:
        decisions += _launchers(state, token, cause)
    return decisions


def _launchers(state: RegistryState, token: BootstrapToken, cause: Cause) -> list[Decision]:
    """The token, and for which nodes it is: that may change from start to start."""
    known = state.tokens.by_id.get(token.id)
    facts: tuple[TokenFact, ...] = (Created(hash=token.hash, approves=True),) if known is None else ()
    if token.keys is not None and (known is None or known.keys != token.keys):
        facts += (Bound(keys=token.keys),)
    if not facts:
        return []
    aggregate = token_of(token.id)
    guard = Guard(aggregate, 0 if known is None else known.sequence)
    return [Decision((Commit(aggregate, facts, guard, cause),), "the launcher's own token")]

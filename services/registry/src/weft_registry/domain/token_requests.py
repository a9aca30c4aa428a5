"""Registration tokens made and revoked by admins. Several may be live; the log has their hashes only."""

import re

from weft_contracts.commit import Commit, Decision, Guard
from weft_contracts.facts.request import TokenRequested, TokenRevocationRequested
from weft_contracts.facts.token import Created, Revoked
from weft_contracts.ids import is_id
from weft_contracts.subjects import token as token_of
from weft_requests import PendingRequest

from weft_registry.domain.state import RegistryState

MAX_TOKEN_NAME = 63
MOST_WAITING = 100_000
_HASH = re.compile(r"[0-9a-f]{64}")


def create(state: RegistryState, pending: PendingRequest, fact: TokenRequested) -> Decision:
    """A new token, good from the moment of the request on."""
    if not is_id(fact.token) or not _HASH.fullmatch(fact.hash):
        return pending.rejected(400, "a token is asked for by its id and the SHA-256 of its secret in hex")
    if len(fact.name) > MAX_TOKEN_NAME or not fact.name.isprintable():
        return pending.rejected(400, f"a token's name has at most {MAX_TOKEN_NAME} printable characters")
    if fact.token in state.tokens.by_id:
        return pending.rejected(409, f"there is a token {fact.token} already: draw another secret")
    if fact.most_waiting is not None and fact.most_waiting > MOST_WAITING:
        return pending.rejected(400, f"with one token at most {MOST_WAITING} nodes may wait for approval at once")
    aggregate = token_of(fact.token)
    expires_at = None if fact.lasts_s is None else pending.at + fact.lasts_s
    created = Created(
        hash=fact.hash,
        approves=fact.approves,
        expires_at=expires_at,
        name=fact.name,
        most_waiting=fact.most_waiting,
    )
    commit = Commit(aggregate, (created,), Guard(aggregate, 0), pending.cause)
    return pending.fulfilled(f"token {fact.token} created", commit, token=fact.token)


def revoke(state: RegistryState, pending: PendingRequest, fact: TokenRevocationRequested) -> Decision:
    """No one joins by it any more; one that was revoked already stays so."""
    token = state.tokens.by_id.get(fact.token)
    if token is None:
        return pending.rejected(404, f"there is no token {fact.token}")
    if token.revoked:
        return pending.fulfilled(f"token {fact.token} is revoked already", token=fact.token)
    aggregate = token_of(fact.token)
    commit = Commit(aggregate, (Revoked(),), Guard(aggregate, token.sequence), pending.cause)
    return pending.fulfilled(f"token {fact.token} revoked", commit, token=fact.token)

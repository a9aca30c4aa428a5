"""Registration tokens made and revoked by admins. Several may be live; the log has their hashes only."""

import re

from weft_contracts.commit import Commit, Decision, Guard
from weft_contracts.facts.request import TokenRequested, TokenRevocationRequested
from weft_contracts.facts.token import Created, Revoked
from weft_contracts.ids import is_id
from weft_contracts.subjects import token as token_of

from weft_registry.domain.outcomes import fulfilled, rejected
from weft_registry.domain.state import Pending, RegistryState

MAX_TOKEN_NAME = 63
_HASH = re.compile(r"[0-9a-f]{64}")


def create(state: RegistryState, pending: Pending, fact: TokenRequested) -> Decision:
    """A new token, good from the moment of the request on."""
    if not is_id(fact.token) or not _HASH.fullmatch(fact.hash):
        return rejected(pending, 400, "a token is asked for by its id and the SHA-256 of its secret in hex")
    if len(fact.name) > MAX_TOKEN_NAME or not fact.name.isprintable():
        return rejected(pending, 400, f"a token's name has at most {MAX_TOKEN_NAME} printable characters")
    if fact.token in state.tokens.by_id:
        return rejected(pending, 409, f"there is a token {fact.token} already: draw another secret")
    aggregate = token_of(fact.token)
    expires_at = None if fact.lasts_s is None else pending.at + fact.lasts_s
    created = Created(hash=fact.hash, approves=fact.approves, expires_at=expires_at, name=fact.name)
    commit = Commit(aggregate, (created,), Guard(aggregate, 0), pending.cause)
    return Decision((commit, fulfilled(pending, token=fact.token)), f"token {fact.token} created")


def revoke(state: RegistryState, pending: Pending, fact: TokenRevocationRequested) -> Decision:
    """No one joins by it any more; one that was revoked already stays so."""
    token = state.tokens.by_id.get(fact.token)
    if token is None:
        return rejected(pending, 404, f"there is no token {fact.token}")
    closing = fulfilled(pending, token=fact.token)
    if token.revoked:
        return Decision((closing,), f"token {fact.token} is revoked already")
    aggregate = token_of(fact.token)
    commit = Commit(aggregate, (Revoked(),), Guard(aggregate, token.sequence), pending.cause)
    return Decision((commit, closing), f"token {fact.token} revoked")

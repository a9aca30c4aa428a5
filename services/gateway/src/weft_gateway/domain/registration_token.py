"""Whether a registration token lets a machine ask to join."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, replace

import weft_api as api
from weft_contracts.commit import Recorded
from weft_contracts.facts.token import Bound, Created, Revoked
from weft_contracts.ids import TokenId, token_hash, token_id

from weft_gateway.domain.refused import Refused


@dataclass(frozen=True, slots=True)
class TokenView:
    """What the log keeps of a token: never its secret."""

    hash: str
    approves: bool
    expires_at: float | None
    revoked: bool = False
    name: str = ""
    created_at: float = 0.0
    """Seconds since the epoch, by the log."""
    most_waiting: int | None = None
    """So many nodes may wait for approval by it, and so many may come in a minute; None: as the settings say."""
    keys: tuple[str, ...] | None = None
    """The only keys that it serves; None: all."""


def evolve_token(view: TokenView | None, recorded: Recorded) -> TokenView | None:
    """The token after one of its commits."""
    for fact in recorded.facts:
        match fact:
            case Created():
                view = TokenView(
                    fact.hash,
                    fact.approves,
                    fact.expires_at,
                    name=fact.name,
                    created_at=recorded.at,
                    most_waiting=fact.most_waiting,
                )
            case Bound():
                view = replace(view, keys=fact.keys) if view else None
            case Revoked():
                view = replace(view, revoked=True) if view else None
            case _:
                pass
    return view


def check_token(tokens: Mapping[TokenId, TokenView], secret: str, public_key: str, now: float) -> TokenId:
    """The id of a token that is good for this key's node; its secret is compared in constant time. `now` is seconds
    since the epoch. Raises Refused, 401."""
    id = token_id(secret)
    view = tokens.get(id)
    if not hmac.compare_digest(view.hash if view else "0" * 64, token_hash(secret)) or view is None:
        raise Refused(401, "The registration token is not known here; ask an admin for one.", code="bad_token")
    if view.revoked:
        raise Refused(401, "The registration token was revoked; ask an admin for a new one.", code="bad_token")
    if view.expires_at is not None and view.expires_at <= now:
        raise Refused(401, "The registration token has expired; ask an admin for a new one.", code="bad_token")
    if view.keys is not None and public_key not in view.keys:
        raise Refused(401, "The registration token is for other machines; ask an admin for one.", code="bad_token")
    return id


def token_shape(id: TokenId, view: TokenView, now: float) -> api.Token:
    """A token as it is listed: without its hash. `now` is seconds since the epoch."""
    expired = view.expires_at is not None and view.expires_at <= now
    return {
        "id": id,
        "name": view.name,
        "state": "revoked" if view.revoked else "expired" if expired else "live",
        "auto_approve": view.approves,
        "expires_at": view.expires_at,
        "created_at": view.created_at,
        "most_waiting": view.most_waiting,
    }

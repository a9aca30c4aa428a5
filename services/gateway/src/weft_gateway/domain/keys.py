"""An API key as the log has it: its hash, never its secret and never its name."""

from dataclasses import dataclass, replace

import weft_api as api
from weft_contracts.commit import Recorded
from weft_contracts.facts.key import Created, Revoked
from weft_contracts.facts.values import Scope
from weft_contracts.ids import KeyId


@dataclass(frozen=True, slots=True)
class KeyView:
    """One key. Times are seconds since the epoch."""

    id: KeyId
    hash: str
    prefix: str
    scopes: tuple[Scope, ...]
    models: tuple[str, ...] | None
    """Names of the only models that it may use; None: all."""
    expires_at: float | None
    created_at: float
    created_by: str
    """The actor: another key's id, the gateway that was started with a first key, or `anonymous`."""
    sequence: int
    """Of its last commit."""
    revoked_at: float | None = None

    def state(self, now: float) -> api.SecretState:
        """`now` is seconds since the epoch."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "live"

    def may(self, needed: Scope) -> bool:
        """Whether its scopes cover the one that is needed; the scope `admin` covers all."""
        return "admin" in self.scopes or needed in self.scopes


def evolve_key(view: KeyView | None, recorded: Recorded) -> KeyView | None:
    """The key after one of its commits. It is created once and revoked once: what comes later changes nothing."""
    for fact in recorded.facts:
        match fact:
            case Created() if view is None:
                view = KeyView(
                    id=KeyId(recorded.aggregate.key),
                    hash=fact.hash,
                    prefix=fact.prefix,
                    scopes=fact.scopes,
                    models=fact.models,
                    expires_at=fact.expires_at,
                    created_at=recorded.at,
                    created_by=recorded.actor,
                    sequence=recorded.sequence,
                )
            case Revoked() if view is not None and view.revoked_at is None:
                view = replace(view, revoked_at=recorded.at)
            case _:
                pass
    return view if view is None else replace(view, sequence=recorded.sequence)


def key_shape(view: KeyView, name: str | None, now: float) -> api.Key:
    """A key as it is listed: without its hash. `now` is seconds since the epoch."""
    return {
        "id": view.id,
        "name": name,
        "prefix": view.prefix,
        "scopes": list(view.scopes),
        "models": None if view.models is None else list(view.models),
        "state": view.state(now),
        "expires_at": view.expires_at,
        "created_at": view.created_at,
        "created_by": view.created_by,
        "revoked_at": view.revoked_at,
    }

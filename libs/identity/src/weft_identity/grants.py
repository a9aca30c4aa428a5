"""Grants: what accounts and users may do, and how the NATS part of their tokens says so."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weft_identity.nkey import Role, expect_role

UNLIMITED = -1
EVERYTHING = (">",)


@dataclass(frozen=True, slots=True)
class ServiceExport:
    """A subject that another account may send to, as a request or as a plain publish.

    `streamed` allows several answers to one request, as a pull of messages needs.
    """

    subject: str
    streamed: bool = False


@dataclass(frozen=True, slots=True)
class StreamExport:
    """A subject whose messages another account may listen to as they pass."""

    subject: str


Export = ServiceExport | StreamExport
"""What one account opens to the others."""


@dataclass(frozen=True, slots=True)
class Import:
    """What an account takes from the account that exports it, under the same subject."""

    export: Export
    account: str


@dataclass(frozen=True, slots=True)
class JetStreamLimits:
    """What an account may store; bytes and counts, UNLIMITED by default."""

    memory_bytes: int = UNLIMITED
    disk_bytes: int = UNLIMITED
    streams: int = UNLIMITED
    consumers: int = UNLIMITED


@dataclass(frozen=True, slots=True)
class Responses:
    """Leave to answer requests on whatever reply subject they name.

    `ttl_s` is how long after the request an answer is let through; 0 means no limit.
    """

    max_messages: int = 1
    ttl_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Permissions:
    """What a user may do. An empty list allows nothing (in the token itself it would allow everything).

    `max_payload_bytes` cuts the connection of whoever exceeds it; `max_subscriptions` refuses further ones.
    """

    publish: Sequence[str] = ()
    subscribe: Sequence[str] = ()
    max_payload_bytes: int = UNLIMITED
    max_subscriptions: int = UNLIMITED
    allow_responses: Responses | None = None


FULL = Permissions(publish=EVERYTHING, subscribe=EVERYTHING)
"""Everything within the user's account."""


@dataclass(frozen=True, slots=True)
class ScopedKey:
    """A signing key whose users get exactly these permissions, whatever their token says.

    Subjects may hold the server's templates, such as `weft.ev.run.{{name()}}.>`.
    """

    public: str
    role: str
    permissions: Permissions


@dataclass(frozen=True, slots=True)
class AccountPlan:
    """What an account token says besides whose it is."""

    name: str
    exports: Sequence[Export] = ()
    imports: Sequence[Import] = ()
    signing_keys: Sequence[str | ScopedKey] = ()
    jetstream: JetStreamLimits | None = None
    revocations: Mapping[str, int] = field(default_factory=dict[str, int])
    """User key → time: that user's tokens issued at that time or before are refused."""


def account_body(plan: AccountPlan) -> dict[str, Any]:
    """Return the NATS part of an account's token: what decides whether two tokens say the same."""
    limits: dict[str, Any] = dict.fromkeys(
        ("subs", "data", "payload", "imports", "exports", "conn", "leaf"), UNLIMITED
    ) | {"wildcards": True}
    if (js := plan.jetstream) is not None:
        limits |= {
            "mem_storage": js.memory_bytes,
            "disk_storage": js.disk_bytes,
            "streams": js.streams,
            "consumer": js.consumers,
        }
    body: dict[str, Any] = {
        "type": "account",
        "version": 2,
        "limits": limits,
        "exports": [_export_body(each) for each in plan.exports],
        "imports": [
            {k: v for k, v in _export_body(each.export).items() if k != "response_type"} | {"account": each.account}
            for each in plan.imports
        ],
        "signing_keys": [_signing_key_body(each) for each in plan.signing_keys],
    }
    return body | ({"revocations": dict(plan.revocations)} if plan.revocations else {})


def _export_body(export: Export) -> dict[str, Any]:
    match export:
        case StreamExport(subject=subject):
            return {"name": subject, "subject": subject, "type": "stream"}
        case ServiceExport(subject=subject, streamed=streamed):
            body = {"name": subject, "subject": subject, "type": "service"}
            return body | ({"response_type": "Stream"} if streamed else {})


def _signing_key_body(key: str | ScopedKey) -> str | dict[str, Any]:
    if isinstance(key, str):
        return expect_role(key, Role.ACCOUNT)
    template = user_body(key.permissions)
    return {
        "kind": "user_scope",
        "key": expect_role(key.public, Role.ACCOUNT),
        "role": key.role,
        "template": template,
    }


def user_body(permissions: Permissions) -> dict[str, Any]:
    """Return the permissions and limits as a user's token, or a scoped key's template, holds them."""
    body: dict[str, Any] = {
        "pub": _subjects_body(permissions.publish),
        "sub": _subjects_body(permissions.subscribe),
        "subs": permissions.max_subscriptions,
        "data": UNLIMITED,
        "payload": permissions.max_payload_bytes,
    }
    if (answers := permissions.allow_responses) is not None:
        body["resp"] = {"max": answers.max_messages, "ttl": int(answers.ttl_s * 1e9)}
    return body


def _subjects_body(subjects: Sequence[str]) -> dict[str, list[str]]:
    # The server reads an empty allow list as no restriction.
    return {"allow": list(subjects)} if subjects else {"deny": [">"]}

"""NATS tokens: minting operator, account and user tokens, and reading them back.

A token is a JWT with the algorithm `ed25519-nkey` and claims of version 2; source of the fields:
https://github.com/nats-io/jwt. Times are whole seconds since 1970, as in the token.
"""

import base64
import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from weft_identity.grants import AccountPlan, Permissions, account_body, user_body
from weft_identity.nkey import KeyPair, Role, expect_role, signed_by

_HEADER = {"typ": "JWT", "alg": "ed25519-nkey"}


class BadToken(ValueError):
    """A token that can't be read, or that the expected issuer did not sign."""


@dataclass(frozen=True, slots=True)
class Claims:
    """A token read back. `body` is its NATS part, as it stands."""

    subject: str
    issuer: str
    name: str
    kind: str
    issued_at: int
    expires_at: int | None
    body: Mapping[str, Any]

    @property
    def revocations(self) -> dict[str, int]:
        """User key → time, of an account token."""
        return dict(cast("Mapping[str, int]", self.body.get("revocations") or {}))


def mint_operator(operator: KeyPair, *, name: str, system_account: str, now: int | None = None) -> str:
    """Return the operator's own token. `system_account` is an account's public key."""
    expect_role(system_account, Role.ACCOUNT)
    body = {"type": "operator", "version": 2, "system_account": system_account}
    return _encode(operator.public, name, body, signer=operator, signer_role=Role.OPERATOR, now=now)


def mint_account(account: str, plan: AccountPlan, *, operator: KeyPair, now: int | None = None) -> str:
    """Return an account token without expiry, signed by the operator.

    Raises:
        BadKey: `account` is no account key, or `operator` no operator key.
    """
    expect_role(account, Role.ACCOUNT)
    return _encode(account, plan.name, account_body(plan), signer=operator, signer_role=Role.OPERATOR, now=now)


def revoke(
    token: str,
    revocations: Mapping[str, int],
    *,
    operator: KeyPair,
    now: int | None = None,
    forget_before: int = 0,
) -> str:
    """Return an account token again with further users revoked, to push to `$SYS.REQ.CLAIMS.UPDATE`.

    Args:
        token: the account's token as the server has it, for it holds the revocations so far.
        revocations: user key → time: that user's tokens issued at that time or before are refused, and its
            connections are cut. "*" stands for every user.
        forget_before: revocations of an earlier time are left out: no token of that age opens anything.

    Raises:
        BadToken: the token is damaged, or not signed by this operator, or not the token of an account.
    """
    claims = read(token, issuers=[operator.public])
    if claims.kind != "account":
        raise BadToken(f"the token of {claims.subject} is of the kind {claims.kind}, not an account's")
    kept = {user: at for user, at in {**claims.revocations, **revocations}.items() if at >= forget_before}
    body = {**claims.body, "revocations": kept}
    issued = max(int(time.time()) if now is None else now, claims.issued_at)
    return _encode(claims.subject, claims.name, body, signer=operator, signer_role=Role.OPERATOR, now=issued)


def mint_user(
    user: str,
    name: str,
    permissions: Permissions | None,
    *,
    signer: KeyPair,
    account: str | None = None,
    expires_in_s: int | None = None,
    now: int | None = None,
) -> str:
    """Return a user token.

    Args:
        user: the user's public key; only its holder can use the token.
        permissions: None for a signer that is a scoped key, which the server refuses otherwise.
        signer: the account's key, or one of its signing keys, and then `account` must be named.
        account: public key of the account that the user belongs to; None: the signer is the account.
        expires_in_s: seconds from `now`; None for no expiry. At expiry the server ends the connection.

    Raises:
        BadKey: a key of the wrong role.
        ValueError: an expiry that is not positive.
    """
    expect_role(user, Role.USER)
    body: dict[str, Any] = {"type": "user", "version": 2}
    if permissions is not None:
        body |= user_body(permissions)
    if account is not None:
        expect_role(account, Role.ACCOUNT)
        body["issuer_account"] = account
    issued = int(time.time()) if now is None else now
    if expires_in_s is not None and expires_in_s <= 0:
        raise ValueError(f"a token can't expire {-expires_in_s} s before it is issued")
    expires = None if expires_in_s is None else issued + expires_in_s
    return _encode(user, name, body, signer=signer, signer_role=Role.ACCOUNT, now=issued, expires=expires)


def read(token: str, *, issuers: Sequence[str] = ()) -> Claims:
    """Read a token and check its signature; expiry and revocation are not judged.

    Args:
        issuers: public keys, one of which must have signed it. Empty: any key, so the claims prove nothing.

    Raises:
        BadToken: damaged, signed by another key than it names, or by none of `issuers`.
    """
    try:
        head, body, signature = token.strip().split(".")
        header = cast("dict[str, Any]", json.loads(_unbase64(head)))
        claims = cast("dict[str, Any]", json.loads(_unbase64(body)))
        nats = cast("dict[str, Any]", claims["nats"])
        read_back = Claims(
            subject=claims["sub"],
            issuer=claims["iss"],
            name=claims.get("name", ""),
            kind=nats["type"],
            issued_at=int(claims["iat"]),
            expires_at=int(claims["exp"]) if claims.get("exp") else None,
            body=nats,
        )
        genuine = signed_by(read_back.issuer, f"{head}.{body}".encode(), _unbase64(signature))
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise BadToken(f"not a NATS token: {type(e).__name__}") from e
    if header.get("alg") != _HEADER["alg"] or not genuine:
        raise BadToken(f"the token of {read_back.subject} is not signed by {read_back.issuer}, which it names")
    if issuers and read_back.issuer not in issuers:
        raise BadToken(f"the token of {read_back.subject} is signed by {read_back.issuer}, an unknown issuer")
    return read_back


def credentials_text(token: str, seed: str) -> str:
    """Return the text of a credentials file, as NATS clients read it. It holds a secret."""
    return (
        f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    )


def _encode(
    subject: str,
    name: str,
    body: Mapping[str, Any],
    *,
    signer: KeyPair,
    signer_role: Role,
    now: int | None,
    expires: int | None = None,
) -> str:
    expect_role(signer.public, signer_role)
    claims: dict[str, Any] = {
        "iat": int(time.time()) if now is None else now,
        "iss": signer.public,
        "sub": subject,
        "name": name,
        "nats": dict(body),
    }
    if expires is not None:
        claims["exp"] = expires
    digest = hashlib.sha256(_json(claims)).digest()
    claims["jti"] = base64.b32encode(digest).decode().rstrip("=")
    unsigned = f"{_base64(_json(_HEADER))}.{_base64(_json(claims))}"
    return f"{unsigned}.{_base64(signer.sign(unsigned.encode()))}"


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _unbase64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))

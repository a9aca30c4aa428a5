"""The mesh's trust: the keys and tokens of its operator and accounts, in a folder of mode 700.

Services live in MESH, which owns JetStream. Workers and observers live in accounts of their own and see of
MESH only what the exports name: a worker in the same account as JetStream could have the server's answers sent
to any subject.
"""

import enum
import json
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from weft_identity.claims import credentials_text, mint_account, mint_operator, mint_user, read, revoke
from weft_identity.grants import (
    AccountPlan,
    Export,
    Import,
    JetStreamLimits,
    Permissions,
    ScopedKey,
    ServiceExport,
    account_body,
)
from weft_identity.nkey import KeyPair, Role
from weft_identity.operator_mode import OperatorMode


class NoTrust(RuntimeError):
    """The folder holds no mesh's trust, or a part of it only."""


class ExposedTrust(RuntimeError):
    """Others on this machine can read the mesh's keys."""


class Account(enum.StrEnum):
    """The mesh's accounts."""

    SYS = "SYS"
    """The server's own: pushes accounts' tokens."""
    MESH = "MESH"
    WORKERS = "WORKERS"
    OBSERVERS = "OBSERVERS"


SHARED = (Account.MESH, Account.WORKERS, Account.OBSERVERS)
"""Those whose tokens say who sees what; they change with Weft's version."""


@dataclass(frozen=True, slots=True)
class AccountExports:
    """What of MESH the other accounts can see. Everything else is out of their reach, whatever a token says.

    With `worker_scope` the workers' tokens carry no permissions of their own: each worker gets these, in
    which `{{name()}}` stands for the name in its token. Without, the registry writes them into every token.
    """

    workers: tuple[Export, ...] = ()
    observers: tuple[Export, ...] = ()
    worker_scope: Permissions | None = None


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user's token and the seed of the key that it is for."""

    token: str
    seed: str = field(repr=False)

    def text(self) -> str:
        """The text of a credentials file."""
        return credentials_text(self.token, self.seed)


@dataclass(frozen=True, slots=True)
class Trust:
    """The keys of the mesh, and the accounts' tokens of the last founding or renewal (public key → token)."""

    operator: KeyPair
    accounts: Mapping[Account, KeyPair]
    worker_signing: KeyPair
    operator_token: str
    account_tokens: Mapping[str, str]

    def public(self, account: Account) -> str:
        """The public key of an account."""
        return self.accounts[account].public

    def operator_mode(self) -> OperatorMode:
        """What the server's configuration needs."""
        return OperatorMode(self.operator_token, self.public(Account.SYS), self.account_tokens)

    def user(
        self, account: Account, name: str, permissions: Permissions, *, expires_in_s: int | None = None
    ) -> Credentials:
        """Make a user with a new key, signed by the account's own key. A worker's token is `worker_token`."""
        key = KeyPair.new(Role.USER)
        signer = self.accounts[account]
        return Credentials(mint_user(key.public, name, permissions, signer=signer, expires_in_s=expires_in_s), key.seed)

    def worker_token(
        self, user: str, name: str, permissions: Permissions | None, *, expires_in_s: int | None = None
    ) -> str:
        """Return a token for a worker's public key; `permissions` is None when the exports have a scope."""
        return mint_user(
            user,
            name,
            permissions,
            signer=self.worker_signing,
            account=self.public(Account.WORKERS),
            expires_in_s=expires_in_s,
        )

    def says(self, account: Account, token: str) -> bool:
        """Whether an account's token, as a server has it, says what the one known here does, revocations aside.

        Raises BadToken: it is not signed by this mesh's operator.
        """
        own = read(self.account_tokens[self.public(account)]).body
        there = read(token, issuers=[self.operator.public]).body
        return _but_revocations(own) == _but_revocations(there)

    def renewed(self, account: Account, current: str | None) -> str | None:
        """What a server is to hold instead of the token that it has of an account, with its revocations; None: it says
        what this mesh's does. Raises BadToken as `says`."""
        if current is None:
            return self.account_tokens[self.public(account)]
        if self.says(account, current):
            return None
        return self.with_revocations(account, self.revoked(account, current=current))

    def revoked(self, account: Account, *, current: str | None = None) -> dict[str, int]:
        """The account's revocations so far: user key → time. Raises BadToken as `with_revocations`."""
        token = current or self.account_tokens[self.public(account)]
        return read(token, issuers=[self.operator.public]).revocations

    def with_revocations(
        self,
        account: Account,
        revocations: Mapping[str, int],
        *,
        current: str | None = None,
        forget_before: int = 0,
    ) -> str:
        """Return the account's token with further users revoked, to be pushed to `$SYS.REQ.CLAIMS.UPDATE`.

        Args:
            revocations: user key → time: tokens issued at that time (seconds since 1970) or before are
                refused.
            current: the account's token as the server has it, with the revocations so far; None: the one
                known here.
            forget_before: earlier revocations are left out: tokens of that age have expired.

        Raises:
            BadToken: `current` is not signed by this mesh's operator.
        """
        token = current or self.account_tokens[self.public(account)]
        return revoke(token, revocations, operator=self.operator, forget_before=forget_before)


def load_or_make(folder: Path, exports: AccountExports, *, resolver: Path | None = None) -> Trust:
    """Make the mesh's keys if the folder isn't there; else read them and bring the accounts to these exports.

    The keys are made once and all at once: a folder that exists is complete. The caller holds the state's
    lock.

    Args:
        resolver: the server's folder of account tokens (`NatsConf.accounts`), where revocations are kept: an
            account whose exports have changed is issued anew with these.

    Raises:
        NoTrust, ExposedTrust: the folder is there and is not whole, or others can read it.
    """
    if not folder.exists():
        operator = KeyPair.new(Role.OPERATOR)
        accounts = {each: KeyPair.new(Role.ACCOUNT) for each in Account}
        token = mint_operator(operator, name="weft", system_account=accounts[Account.SYS].public)
        trust = Trust(operator, accounts, KeyPair.new(Role.ACCOUNT), token, {})
        trust = replace(trust, account_tokens={k: _minted(trust, k, p) for k, p in _plans(trust, exports).items()})
        _write(trust, folder)
        return trust
    trust = load(folder)
    tokens = dict(trust.account_tokens)
    for key, plan in _plans(trust, exports).items():
        if not _says(tokens[key], plan):
            tokens[key] = _minted(trust, key, plan, resolver)
    if tokens != trust.account_tokens:
        trust = replace(trust, account_tokens=tokens)
        _write_tokens(trust, folder)
    return trust


def load(folder: Path) -> Trust:
    """Read the mesh's trust.

    Raises:
        NoTrust: the folder or a file of it is missing or damaged.
        ExposedTrust: others on this machine can read a seed.
    """
    try:
        seeds = {file.stem: _seed(file) for file in sorted(folder.glob("*.seed"))}
        tokens = cast("dict[str, str]", json.loads((folder / "accounts.json").read_text()))
        trust = Trust(
            operator=seeds["operator"],
            accounts={each: seeds[each.lower()] for each in Account},
            worker_signing=seeds["workers-signing"],
            operator_token=(folder / "operator.jwt").read_text().strip(),
            account_tokens=tokens,
        )
        for token in (trust.operator_token, *(tokens[key.public] for key in trust.accounts.values())):
            read(token, issuers=[trust.operator.public])
    except (OSError, KeyError, ValueError) as e:  # ValueError: a bad key, token or JSON
        raise NoTrust(f"{folder} doesn't hold a mesh's trust: {type(e).__name__} {e}") from e
    return trust


def _plans(trust: Trust, exports: AccountExports) -> dict[str, AccountPlan]:
    """What each account's token should say, by public key."""
    mesh = trust.public(Account.MESH)
    signing = trust.worker_signing.public
    # What workers and observers both see may be streamed for one and plain for the other; it is exported once.
    once: dict[tuple[type[Export], str], Export] = {}
    for each in (*exports.workers, *exports.observers):
        known = once.setdefault((type(each), each.subject), each)
        if isinstance(each, ServiceExport) and isinstance(known, ServiceExport) and each.streamed:
            once[type(each), each.subject] = each
    return {
        trust.public(Account.SYS): AccountPlan("SYS"),
        mesh: AccountPlan("MESH", exports=tuple(once.values()), jetstream=JetStreamLimits()),
        trust.public(Account.WORKERS): AccountPlan(
            "WORKERS",
            imports=[Import(each, mesh) for each in exports.workers],
            signing_keys=[ScopedKey(signing, "worker", exports.worker_scope) if exports.worker_scope else signing],
        ),
        trust.public(Account.OBSERVERS): AccountPlan(
            "OBSERVERS", imports=[Import(each, mesh) for each in exports.observers]
        ),
    }


def _minted(trust: Trust, key: str, plan: AccountPlan, resolver: Path | None = None) -> str:
    now = int(time.time())
    if resolver is not None and (stored := resolver / f"{key}.jwt").exists():
        kept = read(stored.read_text(), issuers=[trust.operator.public])
        plan = replace(plan, revocations=kept.revocations)
        now = max(now, kept.issued_at + 1)  # else the server would keep the token that it has
    return mint_account(key, plan, operator=trust.operator, now=now)


def _says(token: str, plan: AccountPlan) -> bool:
    return _but_revocations(read(token).body) == account_body(plan)


def _but_revocations(body: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in body.items() if k != "revocations"}


def _seed(file: Path) -> KeyPair:
    if file.stat().st_mode & 0o007:
        raise ExposedTrust(f"{file} can be read by everyone on this machine: chmod 600 it, and replace the mesh's keys")
    return KeyPair.from_seed(file.read_text().strip())


def _write(trust: Trust, folder: Path) -> None:
    making = folder.with_name(folder.name + ".making")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(mode=0o700, parents=True)
    seeds: dict[str, Any] = {each.lower(): key for each, key in trust.accounts.items()}
    seeds |= {"operator": trust.operator, "workers-signing": trust.worker_signing}
    for name, key in seeds.items():
        _write_file(making / f"{name}.seed", key.seed + "\n")
    _write_file(making / "operator.jwt", trust.operator_token + "\n")
    _write_tokens(trust, making)
    os.replace(making, folder)


def _write_tokens(trust: Trust, folder: Path) -> None:
    fresh = folder / "accounts.json.new"
    _write_file(fresh, json.dumps(dict(trust.account_tokens), indent=1) + "\n")
    os.replace(fresh, folder / "accounts.json")


def _write_file(file: Path, text: str) -> None:
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())

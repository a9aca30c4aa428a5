"""Observers: outsiders who may read the log from a place of their own, and no more. They are made where the trust is.

A place is a durable of the log's server, made with a key of the mesh, which observers have none of. The book of them
lies beside the mesh's keys: names and public keys. The secrets are in the files that were handed out.
"""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncGenerator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from weft_client.failure import Exit, Failure
from weft_contracts import certificates
from weft_contracts import permissions as catalogue
from weft_contracts.ids import is_id
from weft_contracts.topology import KEPT_S, OBSERVERS, observer_durable
from weft_identity.mesh_exports import grants, observer_grants
from weft_identity.nkey import KeyPair
from weft_identity.trust import Account, ExposedTrust, NoTrust, Trust, load

from weft_embedded.state import read_json, write_private

BOOK = "observers.json"
TLS = "tls://"
_INBOX = "_INBOX_observers"
_CONNECT_S = 10.0
_USER_S = 60


@dataclass(frozen=True, slots=True)
class Observer:
    """One credential that was handed out. Times are seconds since the epoch."""

    name: str
    key: str
    made_at: float
    expires_at: float | None = None
    begins: int | None = None
    """Sequence of the first commit that it may read; None: it was made by a Weft that knew no places, and hears nothing
    from this one."""


@dataclass(frozen=True, slots=True)
class NewObserver:
    """What somebody who adds an observer wants of it."""

    name: str
    from_start: bool = False
    """Whether it may read all that happened so far."""
    kept_s: float = KEPT_S
    """For so long its place is kept while nobody reads from it."""
    expires_in_s: int | None = None


class Observers:
    """The observers of one mesh, by the folder of its trust."""

    def __init__(self, trust: Path) -> None:
        """Raises Failure where there is no trust."""
        self.folder = trust.absolute().parent / "observers"
        """Where credentials are written that nobody wants elsewhere."""
        self._book = trust / BOOK
        self._authority = trust / certificates.AUTHORITY
        try:
            self._trust: Trust = load(trust)
        except (NoTrust, ExposedTrust) as error:
            raise Failure(f"observers are made where the mesh's keys are, and {error}") from None

    def known(self) -> list[Observer]:
        """All that may listen, by name; expired ones are left out."""
        found: dict[str, Any] = read_json(self._book) or {}
        all_ = [Observer(**each) for each in found.get("observers", [])]
        return sorted((o for o in all_ if o.expires_at is None or o.expires_at > time.time()), key=lambda o: o.name)

    def add(self, new: NewObserver, nats_url: str) -> str:
        """Make a place and a credential; returns the text of its file. Raises Failure."""
        name, known = new.name, self.known()
        if not is_id(name):
            raise Failure(f"{name!r} is no name of an observer: 1 to 40 of a-z, 0-9 and -", Exit.USAGE)
        if any(each.name == name for each in known):
            raise Failure(f"there is an observer {name} already: remove it, or choose another name")
        if len(known) >= OBSERVERS:
            raise Failure(f"there are {OBSERVERS} observers, and no more may be: remove one that nobody needs")
        begins = asyncio.run(self._make_place(new, nats_url))
        party = catalogue.observer(name)
        made = self._trust.user(Account.OBSERVERS, name, observer_grants(party), expires_in_s=new.expires_in_s)
        now = time.time()
        expires_at = None if new.expires_in_s is None else now + new.expires_in_s
        self._write([*known, Observer(name, KeyPair.from_seed(made.seed).public, now, expires_at, begins)])
        return made.text()

    def authority(self) -> str:
        """The certificate of the mesh's authority, by which observers know its NATS. Raises Failure."""
        try:
            return self._authority.read_text()
        except OSError as error:
            raise Failure(f"the mesh's authority can't be read: {self._authority}: {error.strerror}") from None

    def remove(self, name: str, nats_url: str) -> None:
        """Shut it out: its connections are cut, and stay so over restarts of the server. Raises Failure."""
        known = self.known()
        gone = [each for each in known if each.name == name]
        if not gone:
            raise Failure(f"there is no observer {name}: `weft observers` lists them")
        asyncio.run(self._shut_out(name, {each.key: int(time.time()) for each in gone}, nats_url))
        self._write([each for each in known if each.name != name])

    async def _make_place(self, new: NewObserver, url: str) -> int:
        """Where the observer begins. What an earlier one of its name left is gone."""
        from weft_eventlog import LogUnavailable, apply_durable, drop_durable, last_sequence

        try:
            async with self._connected(Account.MESH, catalogue.observer_maker(new.name), url) as client:
                begins = 1 if new.from_start else await last_sequence(client) + 1
                place = observer_durable(new.name, begins, new.kept_s)
                await drop_durable(client, place)
                await apply_durable(client, place)
        except LogUnavailable as error:
            raise Failure(f"there is no place for {new.name} yet: {error}") from None
        return begins

    async def _shut_out(self, name: str, keys: Mapping[str, int], url: str) -> None:
        from weft_eventlog import LogUnavailable, drop_durable
        from weft_eventlog.system_account import LOOKUP, UPDATE, account_token, push_account

        account = self._trust.public(Account.OBSERVERS)
        system = catalogue.Permissions((LOOKUP.format(account), UPDATE), (f"{_INBOX}.>",), _INBOX)
        try:
            async with self._connected(Account.SYS, system, url) as client:
                current = await account_token(client, account)
                await push_account(client, self._trust.with_revocations(Account.OBSERVERS, keys, current=current))
        except LogUnavailable as error:
            raise Failure(f"nobody is shut out yet: {error}") from None
        try:
            async with self._connected(Account.MESH, catalogue.observer_maker(name), url) as client:
                await drop_durable(client, observer_durable(name))
        except LogUnavailable as error:
            raise Failure(f"{name} is shut out, and its place is still there: {error}; remove it once more") from None

    @contextlib.asynccontextmanager
    async def _connected(self, account: Account, party: catalogue.Permissions, url: str) -> AsyncGenerator[Any]:
        """A connection of a user that lasts a minute. Raises LogUnavailable."""
        from weft_eventlog import LogUnavailable
        from weft_runtime.connection import connect

        tls = None
        if url.startswith(TLS):
            from weft_runtime.tls import client_context, nats_options

            tls = nats_options(client_context(self.authority()))
        user = self._trust.user(account, "observers", grants(party), expires_in_s=_USER_S)
        try:
            async with asyncio.timeout(_CONNECT_S):
                client = await connect(
                    url, jwt=user.token, seed=user.seed.encode(), inbox=party.inbox, name="weft observers", tls=tls
                )
        except Exception as error:  # only the log and the runtime know NATS's errors
            raise LogUnavailable(f"the event log at {url} does not answer ({error!r})") from None
        try:
            yield client
        finally:
            await client.close()

    def _write(self, observers: list[Observer]) -> None:
        write_private(self._book, json.dumps({"observers": [asdict(each) for each in observers]}, indent=1) + "\n")

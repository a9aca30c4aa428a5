"""The founding step: keys, credentials and topology. A process of its own that ends when it is done.

    python -m weft_embedded.founding STATE NAMES EXTERNAL WORKERS

NAMES is JSON: the gateway's names and addresses, or null where the mesh speaks plainly. EXTERNAL: true where NATS is an
operator's: then its accounts are brought to this version's exports, and it must be durable. WORKERS: how many run here;
each has its key before it starts, so that their token can be theirs alone. It prints what `founding_process.Keys`
holds as one line of JSON once keys, credentials and certificates lie in the state, reads the server's URL from stdin
and ends when the server holds the topology. Apart from the launcher because that stays resident, and what is imported
here would stay with it.
"""

import asyncio
import importlib
import json
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft_contracts import catalogue, certificates
from weft_eventlog.errors import LogUnavailable
from weft_identity import trust
from weft_identity.grants import FULL
from weft_identity.mesh_exports import mesh_exports, service_credentials
from weft_identity.nkey import BadKey, KeyPair, Role
from weft_servers.nats_conf import NatsConf
from weft_servers.nats_server import NotDurable

from weft_embedded.state import State, write_private

if TYPE_CHECKING:
    from weft_identity.authority import Authority


_DECLARE_S = 60.0
WORKER_KEY = "node.seed"
"""In a worker's state folder: its key, which is its node."""


def make_keys(state: State) -> trust.Trust:
    """Make or read the mesh's keys, and write fresh credentials for every service."""
    accounts = NatsConf(state.nats, 0, 0).accounts
    found = trust.load_or_make(state.trust, mesh_exports(), resolver=accounts)
    for name in catalogue.SERVICES:
        write_private(state.credentials(name), service_credentials(found, name).text())
    return found


def certify(state: State, names: list[str]) -> "Authority":
    """Make or read the mesh's authority, and write a fresh certificate for each service and for NATS."""
    from weft_identity import authority

    found = authority.load_or_make(state.trust)
    for name in catalogue.SERVICES:
        found.lay_out(state.certificate(name), name, names if name == certificates.GATEWAY else ())
    found.lay_out(state.certificate(certificates.NATS), certificates.NATS)
    return found


def worker_keys(state: State, count: int) -> list[str]:
    """The public keys of this launcher's own workers; who has none yet gets one. One that is damaged is left out: its
    worker says so."""
    found: list[str] = []
    for number in range(1, count + 1):
        file = state.worker(number) / WORKER_KEY
        try:
            found.append(KeyPair.from_seed(file.read_text().strip()).public)
        except FileNotFoundError:
            made = KeyPair.new(Role.USER)
            write_private(file, made.seed)
            found.append(made.public)
        except BadKey:
            continue
    return found


async def declare(found: trust.Trust, url: str, authority: "Authority | None", store: Path | None) -> None:
    """Make the server hold the topology. Raises nats.errors.Error when it can't be reached or refuses.

    `store`: where the state's own server writes; None: the server is an operator's, with limits that the operator set.
    """
    from weft_eventlog.topology import apply_topology, follow_disk
    from weft_runtime.connection import connect

    tls = None
    if authority is not None:
        from weft_runtime.tls import client_context, nats_options

        tls = nats_options(client_context(authority.pem))
    if store is None:
        user = found.user(trust.Account.SYS, "founding", FULL, expires_in_s=120)
        client = await connect(
            url, jwt=user.token, seed=user.seed.encode(), inbox="_INBOX_founding", name="founding", tls=tls
        )
        try:
            await update_accounts(client, found)
        finally:
            await client.close()
    user = found.user(trust.Account.MESH, "founding", FULL, expires_in_s=120)
    client = await connect(
        url, jwt=user.token, seed=user.seed.encode(), inbox="_INBOX_founding", name="founding", tls=tls
    )
    try:
        await apply_topology(client, servers=len(client.servers))
        if store is not None:
            await follow_disk(client, shutil.disk_usage(store).free)
    finally:
        await client.close()


async def update_accounts(client: Any, found: trust.Trust) -> None:
    """See that an operator's servers are durable, and know the accounts as this version has them.

    `client` is of the system account. Raises NotDurable, LogUnavailable.
    """
    from weft_eventlog.system_account import account_token, push_account, servers
    from weft_servers.nats_server import check_durable

    for each in await servers(client):
        check_durable(each)
    for account in trust.SHARED:
        token = found.renewed(account, await account_token(client, found.public(account)))
        if token is not None:
            await push_account(client, token)


def main(folder: str, names: str, external: str, count: str) -> int:
    """Do both steps; the exit status, with the reason on stderr."""
    state, served = State(Path(folder)), json.loads(names)
    try:
        keys = make_keys(state)
        authority = certify(state, served) if served is not None else None
        own = worker_keys(state, int(count))
    except (trust.NoTrust, trust.ExposedTrust, OSError) as e:
        print(e, file=sys.stderr)
        return 1
    digest = authority.digest if authority is not None else None
    print(json.dumps({"operator": asdict(keys.operator_mode()), "authority": digest, "workers": own}), flush=True)
    importlib.import_module("weft_runtime.connection")  # while the server starts
    if not (url := sys.stdin.readline().strip()):
        return 1
    try:
        store = None if json.loads(external) else state.nats
        asyncio.run(asyncio.wait_for(declare(keys, url, authority, store), _DECLARE_S))
    except TimeoutError:
        print(f"NATS at {url} did not do its part within {_DECLARE_S:g} s", file=sys.stderr)
        return 1
    except (LogUnavailable, NotDurable) as e:
        print(e, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:5]))

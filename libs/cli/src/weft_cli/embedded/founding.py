"""The founding step: keys, credentials and topology. A process of its own that ends when it is done.

    python -m weft_cli.embedded.founding STATE NAMES OUTSIDE

NAMES is JSON: the gateway's names and addresses, or null where the mesh speaks plainly. OUTSIDE: true where NATS is an
operator's: then its accounts are brought to this version's walls, and it must be durable. It prints what `trust.Keys`
holds as one line of JSON once keys, credentials and certificates lie in the state, reads the server's URL from stdin
and ends when the server holds the topology. Apart from the launcher because that stays resident, and what is imported
here would stay with it.
"""

import asyncio
import importlib
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft_contracts import certificates, permissions
from weft_eventlog.errors import LogUnavailable
from weft_servers import trust
from weft_servers.grants import FULL
from weft_servers.mesh_walls import mesh_walls, service_credentials
from weft_servers.nats_conf import NatsConf
from weft_servers.nats_server import NotDurable

from weft_cli.embedded.state import State, write_private

if TYPE_CHECKING:
    from weft_servers.authority import Authority


_DECLARE_S = 60.0


def found(state: State) -> trust.Trust:
    """Make or read the mesh's keys, and write fresh credentials for every service."""
    accounts = NatsConf(state.nats, 0, 0).accounts
    found = trust.found(state.trust, mesh_walls(), resolver=accounts)
    for name in permissions.SERVICES:
        write_private(state.credentials(name), service_credentials(found, name).text())
    return found


def certify(state: State, names: list[str]) -> "Authority":
    """Make or read the mesh's authority, and write a fresh certificate for each service and for NATS."""
    from weft_servers import authority

    found = authority.found(state.trust)
    for name in permissions.SERVICES:
        found.lay_out(state.certificate(name), name, names if name == certificates.GATEWAY else ())
    found.lay_out(state.certificate(certificates.NATS), certificates.NATS)
    return found


async def declare(found: trust.Trust, url: str, authority: "Authority | None", *, outside: bool = False) -> None:
    """Make the server hold the topology. Raises nats.errors.Error when it can't be reached or refuses."""
    from weft_eventlog.topology import apply_topology
    from weft_runtime.connection import connect

    tls = None
    if authority is not None:
        from weft_runtime.tls import client_context, nats_options

        tls = nats_options(client_context(authority.pem))
    if outside:
        user = found.user(trust.Account.SYS, "founding", FULL, expires_in_s=120)
        client = await connect(
            url, jwt=user.token, seed=user.seed.encode(), inbox="_INBOX_founding", name="founding", tls=tls
        )
        try:
            await bring_up(client, found)
        finally:
            await client.close()
    user = found.user(trust.Account.MESH, "founding", FULL, expires_in_s=120)
    client = await connect(
        url, jwt=user.token, seed=user.seed.encode(), inbox="_INBOX_founding", name="founding", tls=tls
    )
    try:
        await apply_topology(client, servers=len(client.servers))
    finally:
        await client.close()


async def bring_up(client: Any, found: trust.Trust) -> None:
    """See that an operator's servers are durable, and know the accounts as this version has them.

    `client` is of the system account. Raises NotDurable, LogUnavailable.
    """
    from weft_eventlog.accounts import account_token, push_account, servers
    from weft_servers.nats_server import check_durable

    for each in await servers(client):
        check_durable(each)
    for account in (trust.Account.MESH, trust.Account.WORKERS, trust.Account.OBSERVERS):
        current = await account_token(client, found.public(account))
        if current is None or not found.says(account, current):
            revoked = found.revoked(account, current=current) if current is not None else {}
            await push_account(client, found.with_revocations(account, revoked))


def main(folder: str, names: str, outside: str) -> int:
    """Do both steps; the exit status, with the reason on stderr."""
    state, served = State(Path(folder)), json.loads(names)
    try:
        keys = found(state)
        authority = certify(state, served) if served is not None else None
    except (trust.NoTrust, trust.ExposedTrust, OSError) as e:
        print(e, file=sys.stderr)
        return 1
    digest = authority.digest if authority is not None else None
    print(json.dumps({"operator": asdict(keys.operator_mode()), "authority": digest}), flush=True)
    importlib.import_module("weft_runtime.connection")  # while the server starts
    if not (url := sys.stdin.readline().strip()):
        return 1
    try:
        asyncio.run(asyncio.wait_for(declare(keys, url, authority, outside=json.loads(outside)), _DECLARE_S))
    except TimeoutError:
        print(f"NATS at {url} did not do its part within {_DECLARE_S:g} s", file=sys.stderr)
        return 1
    except (LogUnavailable, NotDurable) as e:
        print(e, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))

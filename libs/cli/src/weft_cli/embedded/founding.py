"""The founding step: keys, credentials and topology. A process of its own that ends when it is done.

    python -m weft_cli.embedded.founding STATE NAMES

NAMES is JSON: the gateway's names and addresses, or null where the mesh speaks plainly. It prints what `trust.Keys`
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
from typing import TYPE_CHECKING

from weft_contracts import certificates, permissions
from weft_servers import trust
from weft_servers.grants import FULL
from weft_servers.mesh_walls import mesh_walls, service_credentials
from weft_servers.nats_conf import NatsConf

from weft_cli.embedded.state import State, write_private

if TYPE_CHECKING:
    from weft_servers.authority import Authority


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


async def declare(found: trust.Trust, url: str, authority: "Authority | None") -> None:
    """Make the server hold the topology. Raises nats.errors.Error when it can't be reached or refuses."""
    from weft_eventlog.topology import apply_topology
    from weft_runtime.connection import connect

    user = found.user(trust.Account.MESH, "founding", FULL, expires_in_s=120)
    tls = None
    if authority is not None:
        from weft_runtime.tls import client_context, nats_options

        tls = nats_options(client_context(authority.pem))
    client = await connect(
        url, jwt=user.token, seed=user.seed.encode(), inbox="_INBOX_founding", name="founding", tls=tls
    )
    try:
        await apply_topology(client)
    finally:
        await client.close()


def main(folder: str, names: str) -> int:
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
    asyncio.run(asyncio.wait_for(declare(keys, url, authority), 60))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))

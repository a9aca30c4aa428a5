"""`weft nats-config`: the configuration of NATS servers that an operator runs for this mesh."""

import os
import secrets
from pathlib import Path

from weft_client.command_names import pasteable
from weft_client.failure import Exit, Failure
from weft_embedded.state import State, write_private
from weft_servers.cluster_conf import FILE, BadMember, Member, checked_members, render

from weft_cli import locate
from weft_cli.outcome import show


def run(folder: Path | None, servers: tuple[str, ...], out: Path, *, as_json: bool) -> None:
    """Write one folder for each server. Raises Failure for what can't be meant, or is there already."""
    try:
        members = checked_members(servers)
    except BadMember as error:
        raise Failure(str(error), Exit.USAGE) from None
    folders = [out.expanduser() / each.name for each in members]
    if there := [each for each in folders if each.exists()]:
        raise Failure(f"{there[0]} is there already: name another folder with --out, or move it away")
    state = locate.state(folder)
    state.prepare()
    _write(state, members, folders)
    urls = ",".join(each.url for each in members)
    if as_json:
        made = [
            {"name": each.name, "host": each.host, "folder": str(own.absolute()), "configuration": FILE}
            for each, own in zip(members, folders, strict=True)
        ]
        show({"servers": made, "url": urls, "state": str(state.folder)})
        return
    for member, own in zip(members, folders, strict=True):
        print(f"copy {own} to {member.host}, and start it there:  cd {own.name} && nats-server -c {FILE}")
    print("\nonce they run, on this machine (the state remembers it):\n")
    print(pasteable(f"  WEFT_NATS_URL={urls} weft up --state {state.folder}"))


def _write(state: State, members: tuple[Member, ...], folders: list[Path]) -> None:
    from weft_contracts import certificates
    from weft_identity import authority, trust
    from weft_identity.mesh_exports import mesh_exports

    try:
        keys = trust.load_or_make(state.trust, mesh_exports())
        signer = authority.load_or_make(state.trust)
    except (trust.NoTrust, trust.ExposedTrust, OSError) as error:
        raise Failure(str(error)) from None
    password = secrets.token_urlsafe(24)
    for member, own in zip(members, folders, strict=True):
        own.mkdir(mode=0o700, parents=True)
        signer.lay_out(own, certificates.NATS, [member.host])
        write_private(own / FILE, render(member, members, keys.operator_mode(), password))
        for each in ("jetstream", "accounts"):
            os.mkdir(own / each, 0o700)

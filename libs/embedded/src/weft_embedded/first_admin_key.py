"""The first API key of a mesh that has come up: whether keys are needed at all, and the first one for people."""

from pathlib import Path

from weft_client import routes
from weft_client.gateway import Gateway, Refused, Unreachable

from weft_embedded.launcher_output import LauncherOutput
from weft_embedded.state import write_private


def keys_needed(url: str, authority: Path | None = None) -> bool:
    """Whether the gateway turns away who shows no key. `authority`: the file of the mesh's own, over TLS."""
    try:
        Gateway(url, timeout_s=10.0, authority=authority).get("/v1/models")
    except Refused as refused:
        return refused.status == 401
    except Unreachable:
        pass
    return False


def show(gateway: Gateway, marker: Path, output: LauncherOutput) -> None:
    """Say that keys are needed; make the first admin key for people and print it, once in a state's life.

    Only its hash is kept. Where others read what this launcher prints, none is made. Raises Refused and Unreachable.
    """
    if marker.exists():
        output.line("everybody needs a key here; commands on this machine have one; more: weft keys create")
        output.line()
        return
    if output.read_by_others:
        output.line("everybody needs a key here. Make the first one, an admin's: weft keys create --scope admin")
        output.line()
        return
    made = routes.make_key(gateway, {"name": "first", "scopes": ["admin"]})
    write_private(marker, f"{made['key']}\n")
    output.line("everybody needs a key here. The first one, an admin's, is shown this once:")
    output.line()
    output.secret(f"  {made['secret']}")
    output.line()
    output.line("  programs and this page's people take it as WEFT_API_KEY or `Authorization: Bearer`;")
    plain = "" if gateway.authority is not None else " Nothing is encrypted: put TLS before it."
    output.line(f"  more keys, for less: weft keys create --name NAME.{plain}")
    output.line()

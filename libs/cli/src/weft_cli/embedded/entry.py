"""Who is let in where the mesh has come up: whether keys are needed, and the first one for people."""

from pathlib import Path
from typing import Any

from weft_cli.client import Gateway, Refused, Unreachable
from weft_cli.embedded.state import write_private
from weft_cli.embedded.voice import Voice


def keys_needed(url: str, authority: Path | None = None) -> bool:
    """Whether the gateway turns away who shows no key. `authority`: the file of the mesh's own, over TLS."""
    try:
        Gateway(url, timeout_s=10.0, authority=authority).get("/v1/models")
    except Refused as refused:
        return refused.status == 401
    except Unreachable:
        pass
    return False


def tell(gateway: Gateway, marker: Path, voice: Voice) -> None:
    """Say that keys are needed; make the first admin key for people and print it, once in a state's life.

    Only its hash is kept. Raises Refused and Unreachable.
    """
    if marker.exists():
        voice.line("everybody needs a key here; commands on this machine have one; more: weft keys create")
        voice.line()
        return
    made: dict[str, Any] = gateway.post("/api/keys", {"name": "first", "scopes": ["admin"]})
    write_private(marker, f"{made['key']}\n")
    voice.line("everybody needs a key here. The first one, an admin's, is shown this once:")
    voice.line()
    voice.secret(f"  {made['secret']}")
    voice.line()
    voice.line("  programs and this page's people take it as WEFT_API_KEY or `Authorization: Bearer`;")
    plain = "" if gateway.authority is not None else " Nothing is encrypted: put TLS before it."
    voice.line(f"  more keys, for less: weft keys create --name NAME.{plain}")
    voice.line()

"""`weft engines`: what the mesh knows of engines."""

import json
from pathlib import Path
from typing import Any, cast

from weft_client import routes
from weft_client.failure import Exit, Failure

from weft_cli import locate
from weft_cli.outcome import show as show_document
from weft_cli.outcome import tell
from weft_cli.render import table


def show(folder: Path | None, url: str | None, *, as_json: bool) -> None:
    """Print all engines, built-in ones among them."""
    found = list(routes.engine_profiles(locate.gateway(folder, url)))
    if as_json:
        show_document(found)
        return
    table(
        ("engine", "known by", "serves", "loads", "runs on", "profile"),
        [
            (
                each["name"],
                "Weft" if each["builtin"] else "an admin",
                ", ".join(each["serves"]),
                ", ".join(each["formats"]) or "no files",
                ", ".join(each["vendors"]),
                each["digest"],
            )
            for each in found
        ],
    )


def add(folder: Path | None, url: str | None, file: Path, *, as_json: bool) -> None:
    """Tell the mesh of an engine. Raises Failure with status 2 for a file that holds no JSON object."""
    answer = routes.set_engine_profile(locate.gateway(folder, url), _profile_in(file))
    tell(
        f"the mesh knows {answer['engine']} by the profile {answer['digest']}: workers that report it may run it",
        answer,
        as_json=as_json,
    )


def remove(folder: Path | None, url: str | None, engine: str, *, as_json: bool) -> None:
    """Let the mesh forget an engine."""
    answer = routes.withdraw_engine_profile(locate.gateway(folder, url), engine)
    tell(f"the mesh knows {engine} no more", answer, as_json=as_json)


def _profile_in(file: Path) -> dict[str, Any]:
    """A profile, alone or with the engine's version beside it."""
    try:
        body: object = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise Failure(f"{file} can't be read as JSON: {error}", Exit.USAGE) from None
    if not isinstance(body, dict):
        raise Failure(f"{file} holds no JSON object: want an engine's profile", Exit.USAGE)
    given = cast("dict[str, Any]", body)
    profile = given.get("profile")
    return cast("dict[str, Any]", profile) if isinstance(profile, dict) else given

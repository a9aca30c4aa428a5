"""`weft backends`: what nodes have installed, and how engines are installed."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from weft_client import routes
from weft_client.failure import Exit, Failure
from weft_client.units import size
from weft_contracts.backends import BadRecipe, document, recipe_of

from weft_cli import locate
from weft_cli.outcome import show as show_document
from weft_cli.outcome import tell
from weft_cli.render import table

if TYPE_CHECKING:  # types alone
    from weft_api import InstalledBackend, WantedBackend


def show(folder: Path | None, url: str | None, *, as_json: bool) -> None:
    """Print by node what is installed, and what is being installed."""
    found = list(routes.backends(locate.gateway(folder, url)))
    if as_json:
        show_document(found)
        return
    rows: list[tuple[str, ...]] = []
    for node in found:
        name = node["node_name"]
        made = node.get("environments", [])
        for each in made:
            about = f"{size(each['bytes'])}, {_use(each)}"
            rows.append((name, each["engine"], each["version"], each["vendor"], "installed", about))
        shown = {(each["engine"], each["version"], each["vendor"]) for each in made}
        for each in node["installed"]:
            if any((each["engine"], each["version"], vendor) in shown for vendor in each["vendors"]):
                continue
            rows.append((name, each["engine"], each["version"], ", ".join(each["vendors"]), "installed", ""))
        under_way = node.get("installs", [])  # an older gateway's answer lacks it
        for each in under_way:
            waits = ", ".join(one["replica"] for one in node["installing"] if one["engine"] == each["engine"])
            about = each["about"] + (f" (for {waits})" if waits else "")
            rows.append((name, each["engine"], each["version"], each["vendor"], "installing", about))
        told = {each["engine"] for each in under_way}
        for install in node["installing"]:
            if install["engine"] not in told or install["last_end"]:
                why = install["last_end"] or ""
                rows.append((name, install["engine"], "", "", "installing", why or f"for {install['replica']}"))
        for wanted in node.get("wanted", []):
            if not wanted["here"] and (wanted["fault"] or wanted["engine"] not in told):
                why = wanted["fault"] or "asked for ahead of need"
                rows.append((name, wanted["engine"], wanted["version"], wanted["vendor"], _ahead(wanted), why))
        if node["allowed"] is False:
            rows.append((name, "", "", "", "installs nothing", "WEFT_INSTALL is none there"))
    table(("node", "engine", "version", "runs on", "state", "about"), rows)


def _use(made: "InstalledBackend") -> str:
    """What uses an environment, and whether it goes."""
    goes = "; it goes" if made["leaves"] else ""
    if made["used_by"]:
        return f"used by {', '.join(made['used_by'])}{goes}"
    since = made["unused_since"]
    when = time.strftime(" since %Y-%m-%d %H:%M", time.localtime(since)) if since is not None else ""
    return f"unused{when}{goes}"


def _ahead(wanted: "WantedBackend") -> str:
    if wanted["fault"] is None:
        return "installing"
    return "failed" if wanted["final"] else "tried again"


def add(folder: Path | None, url: str | None, file: Path, *, as_json: bool) -> None:
    """Let nodes install an engine. Raises Failure with status 2 for a file that holds no recipe."""
    answer = routes.set_backend_recipe(locate.gateway(folder, url), _told_in(file))
    tell(f"nodes install {answer['engine']} by this recipe from now on", answer, as_json=as_json)


def remove(folder: Path | None, url: str | None, engine: str, *, as_json: bool) -> None:
    """Take back how an engine is installed."""
    answer = routes.withdraw_backend_recipe(locate.gateway(folder, url), engine)
    tell(f"the recipe of {engine} is withdrawn", answer, as_json=as_json)


def _told_in(file: Path) -> dict[str, Any]:
    """A recipe, with or without its engine's profile; a recipe alone may stand without its name."""
    try:
        body = document(file.read_text(encoding="utf-8"))
        if not isinstance(body, Mapping):
            raise BadRecipe("it holds no fields: want recipe, and profile for an engine of one's own")
        given = dict(cast("Mapping[str, Any]", body))
        told = given if "recipe" in given else {"recipe": given}
        recipe_of(told["recipe"])
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{file} can't be read: {error}", Exit.USAGE) from None
    except BadRecipe as fault:
        raise Failure(f"{file}: {fault}", Exit.USAGE) from None
    return told

"""`weft upgrade`: which versions of events may be written."""

from pathlib import Path

from weft_client import routes

from weft_cli import locate
from weft_cli.outcome import show as show_document
from weft_cli.outcome import tell
from weft_cli.render import table


def show(folder: Path | None, url: str | None, *, as_json: bool) -> None:
    """Print the events that have more than one version, and the workers that hold an upgrade up."""
    found = routes.upgrade(locate.gateway(folder, url))
    if as_json:
        show_document(found)
        return
    rows = [(each["fact"], str(each["newest"]), str(each["written"])) for each in found["formats"]]
    table(("event", "newest version", "written up to"), rows)
    for node in found["behind"]:
        says = "is of an earlier version" if node["heard"] else "has not said what it reads"
        print(f"the worker of {node['name']} ({node['state']}) {says}: upgrade it, or weft nodes remove {node['name']}")
    if found["finished"]:
        print("the upgrade is finished: all may be written in its newest version")
    else:
        print("when all services and workers are upgraded: weft upgrade finish")


def finish(folder: Path | None, url: str | None, *, as_json: bool) -> None:
    """Let events be written in their newest versions."""
    answer = routes.finish_upgrade(locate.gateway(folder, url))
    done = "may be written from here on" if answer["raised"] else "nothing was left to do: the upgrade was finished"
    tell(f"{answer['raised']} {done}".strip(), answer, as_json=as_json)

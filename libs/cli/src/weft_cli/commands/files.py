"""`weft files`: where models' files lie, and where they are to lie."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft_client import file_routes as routes
from weft_client.failure import Exit, Failure
from weft_client.units import size

from weft_cli import locate
from weft_cli.outcome import show as show_document
from weft_cli.outcome import tell
from weft_cli.render import table

if TYPE_CHECKING:  # types alone
    from weft_api import FilesOnNode, ModelFiles

_BAR = 16
"""Letters of a bar."""


def show(folder: Path | None, url: str | None, *, as_json: bool) -> None:
    """Print by model on which nodes its files are, and how far those are that come."""
    found = list(routes.files(locate.gateway(folder, url)))
    if as_json:
        show_document(found)
        return
    rows: list[tuple[str, ...]] = []
    for each in found:
        of, whole = _name(each), size(each["bytes"])
        rows += [(of, each["files"], whole, one["node_name"], one["state"], _about(one)) for one in each["nodes"]]
        if not each["nodes"]:
            rows.append((of, each["files"], whole, "", "", "on no node"))
    table(("model", "files", "size", "node", "state", "about"), rows)


def _name(files: "ModelFiles") -> str:
    """The models that they are of; where there is none any more, their source."""
    return ", ".join(files["models"]) or f"no model ({files['source'] or 'of an older revision'})"


def _about(one: "FilesOnNode") -> str:
    said: list[str] = []
    progress, about = one["progress"], one.get("about", one["fault"])  # an older gateway's answer lacks it
    if progress is not None:
        said.append(f"{bar(progress['fetched'], progress['total'])} {progress['about']}")
    elif about:
        said.append(about)
    if one["pinned"]:
        said.append("pinned")
    if one["used_by"]:
        said.append(f"used by {', '.join(one['used_by'])}")
    if one["leaves"]:
        said.append("goes once nothing uses it")
    return ", ".join(said)


def bar(done: int, total: int) -> str:
    """`[####............]`."""
    filled = min(_BAR * done // total, _BAR) if total else 0
    return f"[{'#' * filled}{'.' * (_BAR - filled)}]"


def fetch(
    folder: Path | None, url: str | None, model: str, count: int | None, nodes: tuple[str, ...], *, as_json: bool
) -> None:
    """Have nodes fetch a model's files. Raises Failure with status 2 for what can't be meant."""
    if nodes and count is not None:
        raise Failure("--node names the nodes: it takes no --nodes beside it", Exit.USAGE)
    body: dict[str, Any] = {"model": model}
    if nodes:
        body["nodes"] = list(nodes)
    elif count is not None:
        body["count"] = count
    answer = routes.fetch_files(locate.gateway(folder, url), body)
    who = answer.get("nodes", "")
    does = "fetch" if "," in who else "fetches"
    tell(f"{who} {does} the files of {model}: `weft files` tells", answer, as_json=as_json)


def pin(folder: Path | None, url: str | None, files: str, nodes: tuple[str, ...], *, as_json: bool) -> None:
    """Have nodes keep files."""
    answer = routes.pin_files(locate.gateway(folder, url), _body(files, nodes))
    who = answer.get("nodes", "")
    tell(f"{who} {'keep' if ',' in who else 'keeps'} the files of {files}", answer, as_json=as_json)


def unpin(folder: Path | None, url: str | None, files: str, nodes: tuple[str, ...], *, as_json: bool) -> None:
    """Let nodes keep files no longer than they need them."""
    answer = routes.unpin_files(locate.gateway(folder, url), _body(files, nodes))
    tell(f"the files of {files} are pinned no more on {answer.get('nodes', '')}", answer, as_json=as_json)


def remove(folder: Path | None, url: str | None, files: str, nodes: tuple[str, ...], *, as_json: bool) -> None:
    """Have nodes remove files."""
    answer = routes.remove_files(locate.gateway(folder, url), _body(files, nodes))
    who, used = answer.get("nodes", ""), answer.get("in_use", "")
    later = f", on {used} once nothing uses them" if used else ""
    tell(f"{who} {'remove' if ',' in who else 'removes'} the files of {files}{later}", answer, as_json=as_json)


def _body(files: str, nodes: tuple[str, ...]) -> dict[str, Any]:
    return {"files": files, "nodes": list(nodes)}

"""`weft aliases`: names that stand for several models."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weft_client import api, routes
from weft_client.failure import Exit, Failure
from weft_contracts.aliases import MOST_TARGETS, MOST_WEIGHT

from weft_cli import locate
from weft_cli.alias_table import HEAD, line
from weft_cli.outcome import show as show_document
from weft_cli.outcome import tell
from weft_cli.render import table


def show(folder: Path | None, url: str | None, *, as_json: bool) -> None:
    """Print all aliases by name, and how their models stand."""
    found = list(routes.aliases(locate.gateway(folder, url)))
    if as_json:
        show_document(found)
        return
    table(HEAD, [line(row) for each in found for row in api.alias_rows(each)])


def put(
    folder: Path | None, url: str | None, name: str, models: Sequence[str], *, in_order: bool, as_json: bool
) -> None:
    """Let it stand for these. Raises Failure with status 2 for what can't be meant."""
    if len(models) > MOST_TARGETS:
        raise Failure(f"an alias stands for {MOST_TARGETS} models at most, not {len(models)}", Exit.USAGE)
    wanted = [target(each, in_order=in_order) for each in models]
    rule = "order" if in_order else "weights"
    answer = routes.set_alias(locate.gateway(folder, url), name, {"rule": rule, "targets": wanted})
    said = ", then ".join(each["model"] for each in wanted) if in_order else ", ".join(models)
    tell(f"{name} stands for {said}", answer, as_json=as_json)


def remove(folder: Path | None, url: str | None, name: str, *, as_json: bool) -> None:
    """It is no alias any more."""
    answer = routes.remove_alias(locate.gateway(folder, url), name)
    tell(f"there is no alias {name} any more", answer, as_json=as_json)


def target(text: str, *, in_order: bool) -> dict[str, Any]:
    """`MODEL` or `MODEL=WEIGHT`. Raises Failure with status 2."""
    model, given, weight = text.partition("=")
    if not given:
        return {"model": model}
    if in_order:
        raise Failure(f"{text}: with --in-order the order counts, and no share: say {model}", Exit.USAGE)
    if not (weight.isascii() and weight.isdigit() and 1 <= int(weight) <= MOST_WEIGHT):
        raise Failure(f"{text}: a share is a whole number from 1 to {MOST_WEIGHT}", Exit.USAGE)
    return {"model": model, "weight": int(weight)}

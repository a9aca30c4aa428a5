"""`weft explain` of an alias: what it stands for since when, and how each of its models stands."""

import json
from typing import TYPE_CHECKING

from weft_client.api import share_of
from weft_contracts.aliases import AliasRule

from weft_cli.render import cut, printable, table

if TYPE_CHECKING:
    from weft_api import AliasExplanation

_LONGEST = 300
_RULES: dict[AliasRule, str] = {
    "weights": "each request is drawn by share among the models that can take it",
    "order": "each request goes to the first model that is free, or else waits for whichever is free first",
}


def show(found: "AliasExplanation", *, as_json: bool) -> None:
    """Print it."""
    total = sum(each["weight"] for each in found["targets"])
    shares = [share_of(found["rule"], each["weight"], total, place) for place, each in enumerate(found["targets"], 1)]
    if as_json:
        targets = [{**each, "share": share} for each, share in zip(found["targets"], shares, strict=True)]
        print(json.dumps({**found, "alias": found["name"], "targets": targets}, indent=1))
        return
    print(f"{found['name']} is an alias, set at log position {found['position']}: {_RULES[found['rule']]}\n")
    rows = [
        (
            each["model"],
            share,
            f"{each['ready']}/{each['wanted']}",
            "it was deleted" if each["state"] == "deleted" else printable(cut(each["reason"] or "", _LONGEST)),
        )
        for each, share in zip(found["targets"], shares, strict=True)
    ]
    table(("model", "share", "ready", "reason"), rows)

"""`weft explain` of a node: why it is empty or full, and which models it could take one more replica of."""

import json
from typing import TYPE_CHECKING

from weft_client.units import size

from weft_cli.render import printable, table

if TYPE_CHECKING:
    from weft_api import NodeExplanation


def show(found: "NodeExplanation", *, as_json: bool) -> None:
    """Print it."""
    if as_json:
        print(json.dumps(found, indent=1))
        return
    holds = "1 replica" if found["replicas"] == 1 else f"{found['replicas'] or 'no'} replicas"
    where = f"{found['name']} ({found['node']})"
    print(f"{where} is {found['state']} and holds {holds}, at log position {found['position']}\n")
    table(
        ("device", "vendor", "memory", "claimed", "by others", "free"),
        [
            (
                str(each["index"]),
                each["vendor"],
                *(size(each[name]) for name in ("memory", "claimed", "others", "free")),
            )
            for each in found["devices"]
        ],
    )
    print("\none more replica of each model, now:")
    table(
        ("model", "here", "waiting", "answer"),
        [
            (
                each["model"],
                str(each["holds"]),
                str(each["waiting"]),
                printable(each["refusal"] or f"could take it: {each['rung']}, score {each['score']:.3f}"),
            )
            for each in found["models"]
        ],
    )
    if found["more"]:
        print(f"and {found['more']} more models")

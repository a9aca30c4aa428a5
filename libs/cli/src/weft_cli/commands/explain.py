"""`weft explain`: why a replica went where it did and how its last process ended, what a node could take, what an alias
stands for; asked of the gateway."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from weft_client import routes
from weft_client.units import size
from weft_placement.policy import BadPolicy, parse_policy

from weft_cli import locate
from weft_cli.commands import explain_alias, explain_node
from weft_cli.render import age, cut, printable, table

if TYPE_CHECKING:
    from weft_api import ModelStands, NodeAnswer, ReplicaExplanation

_LONGEST = 300


def run(folder: Path | None, url: str | None, ref: str, *, as_json: bool) -> None:
    """Print every node's answer. `ref` is a replica's id, or a model's name: then it is the one of its replicas that
    answers or comes next to it, or where it has none the one that would come next, under how the model stands; what
    went wrong with others follows in a line each. A node tells what it could take, an alias its models."""
    found = routes.explained(locate.gateway(folder, url), ref)
    if (alias := found.get("alias")) is not None:
        explain_alias.show(alias, as_json=as_json)
    elif (node := found.get("node")) is not None:
        explain_node.show(node, as_json=as_json)
    elif (replica := found.get("replica")) is not None:
        if as_json:
            print(json.dumps(replica, indent=1))
        else:
            _show_all(replica)


def _show_all(found: "ReplicaExplanation") -> None:
    if (stands := found.get("stands")) is not None:
        for line in standing_in_words(found["model"], stands, time.time()):
            print(printable(cut(line, _LONGEST)))
        print()
    show(found)
    if (end := found["last_end"]) is not None:
        print(f"\nits last process ended: {printable(cut(end['reason'], _LONGEST))}")
        for line in end["last_lines"]:
            print(printable(f"  | {line}"))
    if found["troubles"]:
        print()
    for line in found["troubles"]:
        print(printable(cut(line, _LONGEST)))


def standing_in_words(model: str, stands: "ModelStands", now: float) -> list[str]:
    """How a model stands, how many replicas it may have, and why it has as many as it has."""
    reason = f": {stands['reason']}" if stands["reason"] else ""
    bounds = bounds_in_words(stands["least"], stands["most"], all_nodes=stands["all_nodes"])
    lines = [
        f"{model} is {stands['state']}{reason}",
        f"{stands['ready']} of {stands['wanted']} replicas ready; {bounds}",
    ]
    if (size := stands["size"]) is not None:
        when = f"{age(now - size['at'])} ago"
        lines.append(f"sized by demand from {size['was']} to {size['replicas']} {when}: {size['why']}")
    return lines


def bounds_in_words(least: int, most: int | None, *, all_nodes: bool) -> str:
    """How many replicas there may be."""
    if all_nodes:
        return "one is wanted on each node that matches"
    if most is None:
        return f"at least {least}"
    return f"always {least}" if least == most else f"from {least} to {most}"


def show(found: "ReplicaExplanation") -> None:
    """Print an explanation for people."""
    print(f"{found['replica']} of model {found['model']}: {printable(found['outcome'])}")
    if (receipt := found["receipt"]) is not None:
        trigger = f"asked for by event {receipt['trigger']}, seed {receipt['seed']}"
        print(f"decided at log position {receipt['position']}, policy {policy_in_words(found)}, {trigger}")
        for rung in receipt.get("rungs", ()):
            print(f"passed over: {rung}")
    else:
        print(f"computed at log position {found['position']}, policy {policy_in_words(found)}")
    if why := found.get("why_not_recomputed"):
        print(f"the nodes that its receipt names; the others aren't computed again: {why}")
    print()
    table(
        ("", "node", "answer", "devices", "score", "scores"),
        [
            (
                "->" if each["chosen"] else "",
                each["name"],
                each["refusal"] or each["rung"],
                claims_in_words(each),
                "" if each["refusal"] else f"{each['score']:.3f}",
                "  ".join(f"{name} {value:.2f}" for name, value in sorted(each["scores"].items())),
            )
            for each in found["nodes"]
        ],
    )
    for line in counted(found["refusals"]):
        print(line)
    for line in remedies_in_words(found):
        print(printable(line))


def remedies_in_words(found: "ReplicaExplanation") -> list[str]:
    """What would have to change for it to have a place; empty where nothing is said of that."""
    remedies, note = found.get("remedies"), found.get("remedies_note")
    if remedies is None:
        return [f"what would have to change isn't computed: {note}"] if note else []
    if not remedies:
        return ["", note if note else "nothing that was tried would give it a place"]
    heading = "it would have a place after this:" if len(remedies) == 1 else "it would have a place after any of these:"
    lines = ["", heading]
    for each in remedies:
        what = ", and ".join(step["what"] for step in each["steps"])
        also = f" ({each['alike']} other {'node' if each['alike'] == 1 else 'nodes'} likewise)" if each["alike"] else ""
        lines.append(f"- {what}{also}")
        lines += [f"    {step['command']}" for step in each["steps"] if step["command"]]
    return [*lines, note] if note else lines


def counted(refusals: Mapping[str, int]) -> list[str]:
    """A line for each reason that other nodes had."""
    pairs = sorted(refusals.items(), key=lambda pair: -pair[1])
    return [f"{count} {'node' if count == 1 else 'nodes'}: {printable(reason)}" for reason, count in pairs]


def policy_in_words(found: "ReplicaExplanation") -> str:
    """Its name and what receipts call it; one from before policies had names has the second alone."""
    receipt = found["receipt"]
    try:
        policy = parse_policy(found["policy"])
    except BadPolicy:  # a later gateway's
        return found["policy"]
    digest = receipt["policy_digest"] if receipt is not None else policy.digest
    return f"{policy.name} ({digest})" if policy.name else f"({digest})"


def claims_in_words(answer: "NodeAnswer") -> str:
    """The devices that a replica would lie on; where part of it lies beside them, how much of each it takes."""
    if not answer["host"]:
        return ", ".join(str(index) for index in answer["devices"])
    devices = [f"{index}: {size(taken)}" for index, taken in zip(answer["devices"], answer["bytes"], strict=False)]
    return ", ".join([*devices, f"machine: {size(answer['host'])}"])

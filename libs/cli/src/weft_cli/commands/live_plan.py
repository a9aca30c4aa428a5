"""`weft plan --live`: where a file's models, or the mesh's own waiting replicas, would go on the mesh as it is."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from weft_client import routes
from weft_client.failure import Exit, Failure
from weft_client.gateway import Refused as GatewayRefused
from weft_placement.plan import Plan, Planned, PlannedMember, Refused

from weft_cli import locate
from weft_cli.commands.plan import document, show, weights_at

if TYPE_CHECKING:
    from weft_api import Plan as PlanAnswer

_BAD_REQUEST = 400


def run(folder: Path | None, url: str | None, path: Path | None, policy: str | None, *, as_json: bool) -> None:
    """Print the plan; nothing is decided. Raises Failure: with status 2 for a file that says something wrong, with 1
    where a replica has no place."""
    body: dict[str, Any] = {} if policy is None else {"policy": policy}
    if path is not None:
        told = document(path)
        body |= {"document": told, "weights": _weights(path, told)}
    try:
        answer = routes.planned(locate.gateway(folder, url), body)
    except GatewayRefused as refused:
        if refused.status != _BAD_REQUEST:
            raise
        option = policy is not None and f"{refused}".startswith(f"policy: {policy} ")
        where = "--" if option else f"{path}: " if path is not None else ""
        raise Failure(f"{where}{refused}", Exit.USAGE) from None
    if not as_json and not answer["placements"] and not answer["refused"]:
        print(f"nothing is to be placed, at log position {answer['position']}")
        return
    show(_plan(answer), as_json=as_json)


def _weights(path: Path, told: object) -> dict[str, Any]:
    """What the headers of the files say that models name, by path. Raises Failure."""
    models = cast("dict[str, Any]", told).get("models") if isinstance(told, dict) else None
    found: dict[str, Any] = {}
    for place, each in enumerate(cast("list[Any]", models) if isinstance(models, list) else []):
        named = cast("dict[str, Any]", each).get("path") if isinstance(each, dict) else None
        if not isinstance(named, str):
            continue  # the gateway says what is wrong with anything else
        try:
            found[named] = weights_at(path.parent / Path(named).expanduser()).model_dump(mode="json")
        except ValueError as error:
            raise Failure(f"{path}: models[{place}].path: {error}", Exit.USAGE) from None
    return found


def _plan(answer: "PlanAnswer") -> Plan:
    placed = [
        Planned(
            model=each["model"],
            replica=each["replica"],
            rung=each["rung"],
            policy=each["policy"],
            score=each["score"],
            scores=each["scores"],
            members=tuple(
                PlannedMember(m["node"], m["rank"], m["ram"], {int(index): size for index, size in m["gpus"].items()})
                for m in each["members"]
            ),
            layers=each["layers"],
            passed_over=tuple(each["passed_over"]),
        )
        for each in answer["placements"]
    ]
    return Plan(tuple(placed), tuple(Refused(**each) for each in answer["refused"]))

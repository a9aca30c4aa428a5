"""`weft policies`: by which rules replicas are placed."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from weft_client import routes
from weft_client.failure import Exit, Failure
from weft_contracts.policies import PlacementPolicy
from weft_contracts.written_policy import UnreadablePolicy, policy_of
from weft_contracts.yaml_document import BadDocument, document

from weft_cli import locate
from weft_cli.outcome import show as show_document
from weft_cli.outcome import tell
from weft_cli.render import table

if TYPE_CHECKING:  # types alone
    from weft_api import Policy

_APART = {"zones": "by zones", "nodes": "by nodes", "no": "no"}


def show(folder: Path | None, url: str | None, *, as_json: bool) -> None:
    """Print all policies by name, the mesh's own marked."""
    found = list(routes.policies(locate.gateway(folder, url)))
    if as_json:
        show_document(found)
        return
    table(
        ("", "policy", "known by", "apart", "slots", "weights", "named by", "digest"),
        [
            (
                "->" if each["default"] else "",
                each["name"],
                "Weft" if each["builtin"] else "an admin",
                _APART.get(each["apart"], each["apart"]),
                str(each["slots"]),
                "  ".join(f"{name} {weight:g}" for name, weight in _weights(each).items()),
                ", ".join(each["models"]),
                each["digest"],
            )
            for each in found
        ],
    )
    own = next((each["name"] for each in found if each["default"]), "")
    print(f"\n-> {own}: the mesh's own, for models that name none")


def print_one(folder: Path | None, url: str | None, name: str, *, as_json: bool) -> None:
    """Print one policy as a file that `set` reads."""
    found = routes.policy(locate.gateway(folder, url), name)
    if as_json:
        show_document(found)
        return
    lines = [f"name: {found['name']}", f"apart: {found['apart']}", f"slots: {found['slots']}", "weights:"]
    print("\n".join([*lines, *(f"  {scorer}: {weight:g}" for scorer, weight in _weights(found).items())]))


def put(folder: Path | None, url: str | None, file: Path, *, as_json: bool) -> None:
    """Tell the mesh a policy. Raises Failure with status 2 for a file that holds none."""
    policy = _told_in(file)
    answer = routes.set_policy(locate.gateway(folder, url), policy.name, policy.model_dump(exclude={"name"}))
    tell(f"models that name {policy.name} are placed by it from now on", answer, as_json=as_json)


def choose(folder: Path | None, url: str | None, name: str, *, as_json: bool) -> None:
    """Make it the mesh's own."""
    answer = routes.choose_policy(locate.gateway(folder, url), name)
    tell(f"models that name no policy are placed by {name} from now on", answer, as_json=as_json)


def withdraw(folder: Path | None, url: str | None, name: str, *, as_json: bool) -> None:
    """There is no such policy any more."""
    answer = routes.withdraw_policy(locate.gateway(folder, url), name)
    tell(f"the policy {name} is withdrawn", answer, as_json=as_json)


def _weights(policy: "Policy") -> dict[str, float]:
    """Those that count."""
    weights: Mapping[str, object] = policy["weights"]
    return {name: weight for name, weight in weights.items() if isinstance(weight, float | int) and weight}


def _told_in(file: Path) -> PlacementPolicy:
    try:
        return policy_of(document(file.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{file} can't be read: {error}", Exit.USAGE) from None
    except (BadDocument, UnreadablePolicy) as fault:
        raise Failure(f"{file}: {fault}", Exit.USAGE) from None

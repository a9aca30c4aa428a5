"""What a file names that neither it nor the mesh has: found before anything is changed."""

from collections.abc import Iterator, Sequence

from weft_cli.apply.changes import Mesh
from weft_cli.apply.fleet_file import FleetFault, FleetFile
from weft_cli.apply.wanted import WantedModel


def check_names(file: FleetFile, wanted: Sequence[WantedModel], mesh: Mesh, *, prune: bool) -> None:
    """Raises FleetFault with a line for each name of nothing. What is to be pruned is nothing."""
    faults = [*_of_policies(file, mesh, prune=prune), *_of_aliases(file, wanted, mesh, prune=prune)]
    if faults:
        raise FleetFault("\n".join(faults))


def _of_policies(file: FleetFile, mesh: Mesh, *, prune: bool) -> Iterator[str]:
    stays = [each["name"] for each in mesh.policies if each["builtin"] or not (prune and file.policies is not None)]
    known = dict.fromkeys([*stays, *(each.name for each in file.told)])
    named = [(f"models[{place}].policy", each.policy) for place, each in enumerate(file.models or ())]
    for where, policy in [*named, ("default_policy", file.default_policy)]:
        if policy and policy not in known:
            yield f"{where}: there is no policy {policy}; there is: {', '.join(known)}"


def _of_aliases(file: FleetFile, wanted: Sequence[WantedModel], mesh: Mesh, *, prune: bool) -> Iterator[str]:
    stays = [each for each in mesh.models if not (prune and file.models is not None)]
    known = {each.name for each in wanted} | {name for each in stays for name in (each["name"], each["id"])}
    for place, alias in enumerate(file.aliases or ()):
        for model in alias.models:
            if model not in known:
                yield f"aliases[{place}].models: there is no model {model}, here or in the mesh"

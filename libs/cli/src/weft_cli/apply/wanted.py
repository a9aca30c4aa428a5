"""What a file's models are to be, as specs of the API."""

from dataclasses import dataclass
from typing import Any

from weft_client.failure import Failure
from weft_client.gateway import Gateway
from weft_client.sources import name_for, plain
from weft_contracts.facts.values import ModelSpec

from weft_cli.apply.fleet_file import FleetFault, FleetFile, ModelEntry
from weft_cli.commands import uploads
from weft_cli.commands.models import DeployOptions, spec

_SAID = ("context_tokens", "concurrency", "engine_args", "policy", "priority", "strategy", "adapters")


@dataclass(frozen=True, slots=True)
class WantedModel:
    """A model by its name, with all that a file can say of it: what it doesn't say is the default."""

    name: str
    spec: dict[str, Any]
    scheduling: dict[str, Any]
    """How it is rolled out and sized, which is no part of a spec."""

    @property
    def runs(self) -> bool:
        """Whether any replica of it is to answer without being asked."""
        return bool(self.spec["min_replicas"])


def wanted_models(file: FleetFile, gateway: Gateway) -> list[WantedModel]:
    """The models of a file, in its order. Raises FleetFault with a line for each that can't be meant."""
    found: list[WantedModel] = []
    faults: list[str] = []
    for place, entry in enumerate(file.models or ()):
        try:
            found.append(_wanted(entry, gateway))
        except Failure as failure:
            faults.append(f"models[{place}]: {failure}")
    names = [each.name for each in found]
    faults += [f"models: two are called {name}" for name in dict.fromkeys(names) if names.count(name) > 1]
    if faults:
        raise FleetFault("\n".join(faults))
    return found


def _wanted(entry: ModelEntry, gateway: Gateway) -> WantedModel:
    if uploads.sent_path(gateway, entry.source, upload=False) is not None:
        raise Failure(
            f"{entry.source} is a file of this machine, and apply sends none: `weft deploy {entry.source}` does, and"
            f" path:{entry.source} names one on the workers"
        )
    options = DeployOptions(
        engine=entry.engine,
        context=entry.context,
        concurrency=entry.concurrency,
        loras=tuple(entry.loras),
        source_secret=entry.source_secret,
        policy=entry.policy,
        priority=entry.priority,
    )
    asked = spec(entry.source, options)
    asked["engine_args"] = asked.get("engine_args", {}) | entry.engine_args
    defaults = {name: ModelSpec.model_fields[name].get_default(call_default_factory=True) for name in _SAID}
    none: dict[str, Any] = {"adapters": []}
    places = {"selector": dict(entry.selector), "capability": entry.capability, "anti_affinity": entry.anti_affinity}
    whole = {**defaults, **none, **asked, **places, **entry.numbers}
    if entry.layout:
        whole["layout"] = entry.layout
    return WantedModel(entry.name or name_for(plain(entry.source)), whole, entry.scheduling)

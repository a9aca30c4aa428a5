"""What a node could install of an engine, for which of its devices, and why not."""

from collections.abc import Collection, Mapping

from weft_contracts.backends import TOOLS, BackendRecipe, BackendVariant
from weft_contracts.engines import BUILTIN, EngineProfile, is_of
from weft_contracts.facts.values import Device, Installs, Vendor
from weft_fleet import NodeView

_NAMED_BY = "UV_INDEX, WEFT_INSTALL_INDEX or WEFT_INSTALL_OFFLINE of its worker"


def installed_for(node: NodeView, engine: EngineProfile) -> frozenset[Vendor]:
    """The vendors of devices that the node's backends of this engine can use."""
    name = engine.name  # compared here first: this is asked of every backend of every node
    return frozenset(v for each in node.backends if each.engine == name and is_of(each, engine) for v in each.vendors)


def installable(
    node: NodeView, engine: EngineProfile, recipe: BackendRecipe | None
) -> Mapping[Vendor, BackendVariant] | str:
    """What it could install, by the vendor of the devices that it would be for; or the reason why nothing.

    The reason is said of the node and has no figures of its own; empty: nothing is to be said of installing.
    """
    installs, hardware = node.installs, node.hardware
    if installs is None or hardware is None or recipe is None or not _runs(engine):
        return ""
    if not installs.allowed:
        return "may install none"
    lies = {each.recipe for each in node.environments}
    found: dict[Vendor, BackendVariant] = {}
    refused: dict[str, None] = {}
    for device in hardware.devices:
        if device.simulated or device.vendor in found or device.vendor not in engine.vendors:
            continue
        variant = recipe.for_driver(device.vendor, device.driver)
        if variant is None:
            refused.setdefault(_without(device, recipe))
        elif variant.digest not in lies and installs.lacks_room(variant.digest, variant.disk):
            refused.setdefault("has too little disk to install it")
        elif variant.digest not in lies and (lacking := _unbuildable(installs, variant)):
            refused.setdefault(lacking)
        elif variant.build and not installs.own_index and variant.digest not in lies:
            refused.setdefault(f"its {variant.build} build is on no public index: {_NAMED_BY} must name one")
        else:
            found[device.vendor] = variant
    return found or " and ".join(refused) or "the catalogue has none for its devices"


def _unbuildable(installs: Installs, variant: BackendVariant) -> str:
    """Why the node can't build what is to be built there; empty: it can, or there is nothing to build."""
    if variant.source is None:
        return ""
    if installs.builds is None:
        return f"its worker is of a version that builds none, as the one for {variant.vendor} is"
    lacking = " and ".join(TOOLS[tool] for tool in variant.source.lacks(installs.builds))
    return f"the one for {variant.vendor} is built there, which needs {lacking}" if lacking else ""


def obtainable(node: NodeView, engine: EngineProfile, recipe: BackendRecipe | None) -> bool:
    """Whether the node has the engine, of whatever profile, or could install it."""
    if any(backend.engine == engine.name for backend in node.backends):
        return True
    return not isinstance(installable(node, engine, recipe), str)


def to_install(
    node: NodeView, engine: EngineProfile, recipe: BackendRecipe | None, devices: Collection[int]
) -> BackendVariant | None:
    """What the engine is to run in on these devices of the node, which installs it where it is not there yet.

    None: what lies there is used as it is.

    Where the node made an environment itself, a newer recipe is installed beside it, if the node can have that.
    """
    if node.hardware is None:
        return None
    vendors: set[Vendor] = {device.vendor for device in node.hardware.devices if device.index in devices}
    if len(vendors) > 1:  # beside accelerators the processor's memory is claimed, and nothing runs for it
        vendors.discard("cpu")
    could = installable(node, engine, recipe)
    if isinstance(could, str):
        return None
    made: set[Vendor] = {each.vendor for each in node.environments if each.engine == engine.name}
    wanted = (vendors - installed_for(node, engine)) | (vendors & made)
    return next((could[vendor] for vendor in sorted(wanted) if vendor in could), None)


def lacks(node: NodeView, engine: EngineProfile, recipe: BackendRecipe | None, devices: Collection[int]) -> bool:
    """Whether something has to be installed on the node before the engine runs there on these devices."""
    variant = to_install(node, engine, recipe, devices)
    return variant is not None and all(each.recipe != variant.digest for each in node.environments)


def _runs(engine: EngineProfile) -> bool:
    """Whether a host could run it once it is there: an engine that Weft comes with may have no adapter yet."""
    return bool(engine.install.adapter) or engine.name not in BUILTIN


def _without(device: Device, recipe: BackendRecipe) -> str:
    if any(variant.vendor == device.vendor for variant in recipe.variants):
        return f"its {device.vendor} driver is none of those that the catalogue has one for"
    return "the catalogue has none for its devices"

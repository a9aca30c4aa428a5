"""What there is to know of an engine that puts some of a model's layers on an accelerator."""

from weft_contracts.engines import Argument, EngineProfile, HeaderClaim, Install

PROFILE = EngineProfile(
    name="layered",
    serves=("chat",),
    formats=("gguf",),
    vendors=("nvidia",),
    made_up_devices=True,
    claim=HeaderClaim(slack=0.5, overhead=3 << 20, cpu_overhead=5 << 20, layers_argument="gpu_layers"),
    arguments={"gpu_layers": Argument(type="integer", least=-1)},
    install=Install(package="weft-layered", adapter="weft_layered.engine:layered"),
)

"""What there is to know of the keyed engine."""

from weft_contracts.engines import Argument, ArgumentClaim, EngineProfile, Install

PROFILE = EngineProfile(
    name="keyed",
    serves=("chat",),
    vendors=("cpu",),
    claim=ArgumentClaim(argument="memory_bytes", default=3 << 20),
    resumes_greedy=True,
    arguments={"api_key": Argument(type="text"), "memory_bytes": Argument(type="integer", least=0)},
    install=Install(package="weft-keyed", adapter="weft_keyed.adapter:Keyed"),
)

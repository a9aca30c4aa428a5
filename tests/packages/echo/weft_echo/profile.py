"""What there is to know of the echo."""

from weft_contracts.engines import Argument, EngineProfile, HeaderClaim, Install

PROFILE = EngineProfile(
    name="echo",
    serves=("chat",),
    formats=("gguf",),
    vendors=("cpu",),
    claim=HeaderClaim(slack=0.5, overhead=0, cpu_overhead=3 << 20),
    resumes_greedy=True,
    arguments={"times": Argument(type="integer", least=1, most=3)},
    install=Install(package="weft-echo", adapter="weft_echo.adapter:Echo"),
)

"""What there is to know of the three engines. Workers read it, so it imports none of them."""

from weft_contracts.engines import Argument, ArgumentClaim, EngineProfile, Install

MEMORY = ArgumentClaim(argument="memory_bytes", default=128 << 20)
BYTES = Argument(type="integer", least=1 << 20)


def adapter(name: str) -> Install:
    """Where the engine is."""
    return Install(package="weft-own-engines", adapter=f"weft_own_engines.engines:{name}")


PRINTER = EngineProfile(
    name="printer",
    serves=("chat",),
    vendors=("cpu",),
    claim=MEMORY,
    arguments={"memory_bytes": BYTES, "program": Argument(type="text", choices=("sort", "rev", "cat"))},
    install=adapter("printer"),
)
LETTERS = EngineProfile(
    name="letters",
    serves=("embeddings",),
    vendors=("cpu",),
    claim=MEMORY,
    arguments={"memory_bytes": BYTES},
    install=adapter("letters"),
)
OVERLAP = EngineProfile(
    name="overlap",
    serves=("rerank",),
    vendors=("cpu",),
    claim=MEMORY,
    arguments={"memory_bytes": BYTES},
    install=adapter("overlap"),
)

"""The engines that a host can run, each imported only when it is asked for."""

from typing import assert_never

from weft_dataplane import Engine

from weft_engine.launch import Launch


async def load_engine(launch: Launch) -> Engine:
    """Load the engine that the launch names. Raises LoadFailed."""
    match launch.engine:
        case "llama.cpp":
            from weft_engine.adapters.llamacpp import LlamaCpp

            return await LlamaCpp.start(launch)
        case "simulated":
            from weft_engine.adapters.simulated import Simulated

            return await Simulated.start(launch)
        case _:
            assert_never(launch.engine)

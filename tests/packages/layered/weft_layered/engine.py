"""The engine, made of one function."""

from weft_engine.functions import FunctionAdapter, Functions
from weft_engine.launch import Launch


def load(launch: Launch) -> Functions:
    """Whatever it is asked, it says its launch."""
    return Functions(write=lambda question: iter([launch.model_dump_json(include={"devices", "engine_args"})]))


layered = FunctionAdapter(load)

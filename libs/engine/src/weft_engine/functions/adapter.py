"""The adapter of an engine that is made of functions."""

import importlib.metadata
from collections.abc import Callable

from weft_engine.functions.abilities import Functions
from weft_engine.functions.function_engine import FunctionEngine
from weft_engine.installed import NotInstalled, profile_of
from weft_engine.launch import Launch
from weft_engine.native_calls import on_own_thread


class FunctionAdapter:
    """What a profile's `install.adapter` names: made with a function that loads and answers the functions."""

    def __init__(self, load: Callable[[Launch], Functions]) -> None:
        """`load` runs on a thread, may take its time, and raises `weft_dataplane.LoadFailed` with a sentence."""
        self._load = load

    async def start(self, launch: Launch) -> FunctionEngine:
        """Load. Raises what the loading raised."""
        functions = await on_own_thread(lambda: self._load(launch), "functions-load")
        return FunctionEngine(launch, functions, _version(launch.engine))


def _version(engine: str) -> str:
    """Of the package that brings the engine."""
    try:
        return importlib.metadata.version(profile_of(engine).install.package)
    except (NotInstalled, importlib.metadata.PackageNotFoundError):
        return "0"

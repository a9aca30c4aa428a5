"""The engines of this environment: those that Weft comes with, and those that an installed package brings.

A package brings one by an entry point of the group `weft.engines`: its name is the engine's, its object the engine's
profile, whose install names the adapter. The profile's module imports no engine: agents read it, too.

    python -m weft_engine.installed ENGINE      prints version and profile as one JSON object
"""

import importlib
import importlib.metadata
import json
import sys
from collections.abc import Iterator
from typing import Any, Final

from weft_contracts.engines import BUILTIN, EngineProfile

GROUP: Final = "weft.engines"


class NotInstalled(Exception):
    """An engine that this environment doesn't have; the message is a sentence for people."""


def profiles() -> Iterator[EngineProfile | NotInstalled]:
    """All that this environment knows, built-in ones first; for what a package brings and can't be read, the fault."""
    yield from BUILTIN.values()
    for name in sorted(importlib.metadata.entry_points(group=GROUP).names - BUILTIN.keys()):
        try:
            yield profile_of(name)
        except NotInstalled as fault:
            yield fault


def profile_of(engine: str) -> EngineProfile:
    """What there is to know of an engine. A package can't bring another profile of a built-in one.

    Raises NotInstalled.
    """
    if engine in BUILTIN:
        return BUILTIN[engine]
    brought = importlib.metadata.entry_points(group=GROUP)
    if engine not in brought.names:
        known = sorted(BUILTIN.keys() | brought.names)
        raise NotInstalled(f"there is no engine {engine!r} in this environment: there are {', '.join(known)}")
    try:
        profile: object = brought[engine].load()
    except Exception as error:  # a package's own code may do anything
        raise NotInstalled(f"the profile of the engine {engine} can't be read: {error}") from None
    if not isinstance(profile, EngineProfile) or profile.name != engine:
        raise NotInstalled(f"{brought[engine].value} is no profile of the engine {engine}")
    return profile


def version_of(profile: EngineProfile) -> str:
    """The installed version of the engine. Raises NotInstalled, with what to install, or where nothing can run it."""
    if not profile.install.adapter:
        raise NotInstalled(f"the engine {profile.name} has no adapter yet: nothing can run it")
    for package in (profile.install.package, *profile.install.also):
        try:
            return importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    raise NotInstalled(f"install {profile.install.package}")


def adapter_of(profile: EngineProfile) -> Any:
    """The adapter that the profile names. Raises NotInstalled."""
    module, _, name = profile.install.adapter.partition(":")
    if not module:
        raise NotInstalled(f"the engine {profile.name} has no adapter yet: nothing can run it")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise NotInstalled(f"the adapter of the engine {profile.name} can't be loaded: {error}") from None


def main() -> None:
    """Tell about one engine, or leave with a sentence and status 1."""
    try:
        profile = profile_of(sys.argv[1])
        print(json.dumps({"version": version_of(profile), "profile": profile.model_dump(mode="json")}))
    except NotInstalled as missing:
        sys.exit(str(missing))


if __name__ == "__main__":
    main()

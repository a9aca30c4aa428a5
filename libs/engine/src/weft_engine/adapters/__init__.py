"""The engines that a host can run, each imported only when it is asked for."""

from weft_dataplane import Engine, LoadFailed

from weft_engine.arguments import check_arguments
from weft_engine.installed import NotInstalled, adapter_of, profile_of
from weft_engine.launch import Launch


async def load_engine(launch: Launch) -> Engine:
    """Load the engine that the launch names, by the adapter of its profile. Raises LoadFailed."""
    try:
        profile = profile_of(launch.engine)
        adapter = adapter_of(profile)
    except NotInstalled as missing:
        raise LoadFailed(str(missing), permanent=True) from None
    if launch.ranks > 1 and "nodes" not in profile.splits:
        raise LoadFailed(f"{launch.engine} runs on one node, and this is one of {launch.ranks} ranks", permanent=True)
    check_arguments(launch, profile)
    return await adapter.start(launch)

"""The metadata-cache, put together."""

import asyncio
from collections.abc import Sequence
from functools import partial

from weft_contracts.commit import Recorded
from weft_eventlog import blobs
from weft_files import NoRoom
from weft_fleet import digest_of
from weft_runtime.service import Runtime
from weft_runtime.settings import BadSetting
from weft_runtime.tls_settings import tls_folder
from weft_sources.environment import as_hosts, source_settings

from weft_metadata_cache.domain.due_fetches import Limits, State
from weft_metadata_cache.inbound.collector import Collector
from weft_metadata_cache.outbound.fetch import Fetcher
from weft_metadata_cache.outbound.store import Store
from weft_metadata_cache.settings import MetadataCacheSettings


async def start(runtime: Runtime) -> None:
    """Fold the log, and collect while this instance leads."""
    settings = runtime.settings
    assert isinstance(settings, MetadataCacheSettings)
    state = State()

    def fold(commits: Sequence[Recorded]) -> None:
        for commit in commits:
            state.apply(commit)

    projection = runtime.projection("metadata-cache", fold, state, on_restored=state.on_restored)
    leadership = await runtime.leadership()
    folder = tls_folder(settings)
    fetcher = Fetcher(
        source_settings(hub=settings.hub or "", allow=as_hosts(settings.sources_allow)),
        folder=settings.transfer_folder,
        most_bytes=settings.metadata_most_bytes,
        timeout=settings.metadata_timeout,
        context=folder.client if folder is not None else None,
    )
    try:
        await asyncio.to_thread(fetcher.begin)
    except (OSError, NoRoom) as error:
        raise BadSetting(f"WEFT_METADATA_FOLDER can't be used: {error}") from None
    collector = Collector(
        runtime.log,
        projection,
        state,
        Store(partial(blobs.read, runtime.client), partial(blobs.put, runtime.client)),
        fetcher,
        leads=lambda: leadership.held,
        limits=Limits(settings.metadata_most_bytes, settings.metadata_tries, settings.metadata_pause),
        health=runtime.health,
    )
    runtime.follow(projection, lambda: digest_of(state))
    runtime.spawn("collecting", collector.run())

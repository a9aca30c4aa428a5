"""Looks at models of sources elsewhere in threads of their own, so that a slow hub takes none from anybody else."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from weft_contracts.engines import FileFormat, Profiles
from weft_contracts.facts.source import RemoteSource
from weft_contracts.source_keys import told_source
from weft_sources.refused import SourceRefused

from weft_worker_agent.outbound.files.found import NotFound
from weft_worker_agent.outbound.files.remote_files import FoundElsewhere, look_elsewhere
from weft_worker_agent.outbound.files.source_secrets import SourceSecrets

AT_ONCE: Final = 4
WITHIN_S: Final = 90.0
"""A source that tells its files and headers no sooner is given up."""


class LooksElsewhere:
    """The looks of one agent. A thread whose look was given up ends with its request, which has its own bound."""

    def __init__(self, secrets: SourceSecrets, within_s: float = WITHIN_S) -> None:
        self._secrets = secrets
        self._within_s = within_s
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="look")

    async def look(
        self, source: RemoteSource, engine: str, engines: Profiles, formats: Sequence[FileFormat]
    ) -> FoundElsewhere:
        """See `look_elsewhere`. Raises NotFound."""
        try:
            settings = await self._secrets.settings_for(source)
        except SourceRefused as refused:
            raise NotFound(str(refused)) from None

        def looked() -> FoundElsewhere:
            return look_elsewhere(source, engine, settings, engines, formats, within_s=self._within_s)

        try:
            async with asyncio.timeout(self._within_s):
                return await asyncio.get_running_loop().run_in_executor(self._threads, looked)
        except TimeoutError:
            raise NotFound(f"{told_source(source)} was not told within {self._within_s:g} s") from None

    def close(self) -> None:
        """Begin no more."""
        self._threads.shutdown(wait=False, cancel_futures=True)

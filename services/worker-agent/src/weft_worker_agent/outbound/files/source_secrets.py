"""By which settings a source is asked: the worker's own, or with the secret that the source names."""

from weft_contracts.facts.source import RemoteSource
from weft_sources.refused import SourceRefused
from weft_sources.secret_value import settings_with
from weft_sources.settings import SourceSettings

from weft_worker_agent.outbound.mesh.node_secrets import NodeSecrets, NoSecret


class SourceSecrets:
    """Values stand in memory, for as long as something is asked with them."""

    def __init__(self, settings: SourceSettings, secrets: NodeSecrets | None = None) -> None:
        """`secrets`: None where this worker has no gateway to fetch them from."""
        self.settings = settings
        self._secrets = secrets

    async def settings_for(self, source: RemoteSource) -> SourceSettings:
        """Waits for the secret's value, within the bound of `NodeSecrets`. Raises SourceRefused."""
        if not source.secret:
            return self.settings
        if self._secrets is None:
            raise SourceRefused(f"the secret {source.secret} can't be fetched: this worker has no gateway for it")
        try:
            held = await self._secrets.fetched([source.secret], lambda: True)
        except NoSecret as missing:
            raise SourceRefused(str(missing)) from None
        return settings_with(self.settings, source, held[source.secret].value)

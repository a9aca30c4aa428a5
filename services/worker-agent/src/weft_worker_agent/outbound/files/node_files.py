"""What a node has and can have of models from elsewhere: its store, what fetches into it, what looks before."""

from collections.abc import Callable
from pathlib import Path

from weft_files.bounds import Bounds
from weft_files.store import Store
from weft_sources.content_bucket import ContentBucket

from weft_worker_agent.outbound.files.arrivals import Arrivals
from weft_worker_agent.outbound.files.file_source import FileSource
from weft_worker_agent.outbound.files.looks_elsewhere import LooksElsewhere
from weft_worker_agent.outbound.files.mesh_store import MeshStore
from weft_worker_agent.outbound.files.model_fetches import ModelFetches
from weft_worker_agent.outbound.files.offered_files import OfferedFiles
from weft_worker_agent.outbound.files.peers import Peers
from weft_worker_agent.outbound.files.source_secrets import SourceSecrets


class NodeFiles:
    """Of one agent. What an earlier one left half made in the store is gone once this is made."""

    def __init__(
        self,
        folder: Path,
        secrets: SourceSecrets,
        *,
        at_once: int,
        most_bytes: int | None,
        changed: Callable[[], None],
        peers: Peers | None = None,
        bounds: Bounds | None = None,
        bucket: ContentBucket | None = None,
    ) -> None:
        """`folder` is the store's, `peers` are other nodes, `bucket` is the mesh's own store, None: it has none; the
        others: see `ModelFetches`. Raises OSError."""
        store = Store(folder)
        self.arrivals = Arrivals(store)
        self.mesh_store = MeshStore(bucket, store) if bucket is not None else None
        self._source = FileSource(store, secrets, self.arrivals, peers, bounds, self.mesh_store)
        self.offered = OfferedFiles(store)
        self.fetches = ModelFetches(store, self._source, at_once=at_once, most_bytes=most_bytes, changed=changed)
        self.elsewhere = LooksElsewhere(secrets)

    async def close(self) -> None:
        """End what is under way."""
        await self.fetches.close()
        self._source.close()
        self.offered.close()
        self.elsewhere.close()

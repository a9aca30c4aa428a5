"""What `/metrics` tells of the models that are fetched here."""

from prometheus_client import Gauge

from weft_worker_agent.outbound.files.model_fetches import ModelFetches

_HERE = Gauge("weft_files_bytes", "Bytes of models' files that were fetched and lie on this node")
_FREE = Gauge("weft_files_free_bytes", "Bytes of models' files that this node's disk still has room for")


def show_files(fetches: ModelFetches) -> None:
    """Read at each look, off what is known in memory and one question to the disk."""
    _HERE.set_function(lambda: sum(fetches.there.values()))
    _FREE.set_function(lambda: fetches.free)

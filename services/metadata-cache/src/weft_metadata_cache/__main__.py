"""Starts the metadata-cache: `python -m weft_metadata_cache`."""

from weft_runtime.service import serve

from weft_metadata_cache.app import start
from weft_metadata_cache.settings import MetadataCacheSettings

if __name__ == "__main__":
    raise SystemExit(serve("metadata-cache", MetadataCacheSettings(), start))

"""Starts the metadata-cache: `python -m weft_metadata_cache`."""

import sys

from weft_runtime.arguments import refuse_arguments
from weft_runtime.service import serve

from weft_metadata_cache.app import start
from weft_metadata_cache.settings import MetadataCacheSettings

if __name__ == "__main__":
    refuse_arguments("weft_metadata_cache", MetadataCacheSettings, sys.argv[1:])
    raise SystemExit(serve("metadata-cache", MetadataCacheSettings(), start))

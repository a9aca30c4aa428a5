"""Starts the registry: `python -m weft_registry`."""

import sys

from weft_runtime.arguments import refuse_arguments
from weft_runtime.service import serve

from weft_registry.app import start
from weft_registry.settings import RegistrySettings

if __name__ == "__main__":
    refuse_arguments("weft_registry", RegistrySettings, sys.argv[1:])
    raise SystemExit(serve("registry", RegistrySettings(), start))

"""Starts the registry: `python -m weft_registry`."""

from weft_runtime.service import serve

from weft_registry.app import start
from weft_registry.settings import RegistrySettings

if __name__ == "__main__":
    raise SystemExit(serve("registry", RegistrySettings(), start))

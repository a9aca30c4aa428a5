"""Starts the reconciler: `python -m weft_reconciler`."""

from weft_runtime.service import serve

from weft_reconciler.app import start
from weft_reconciler.settings import ReconcilerSettings

if __name__ == "__main__":
    raise SystemExit(serve("reconciler", ReconcilerSettings(), start))

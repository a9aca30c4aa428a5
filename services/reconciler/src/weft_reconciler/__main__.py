"""Starts the reconciler: `python -m weft_reconciler`."""

import sys

from weft_runtime.arguments import refuse_arguments
from weft_runtime.service import serve

from weft_reconciler.app import start
from weft_reconciler.settings import ReconcilerSettings

if __name__ == "__main__":
    refuse_arguments("weft_reconciler", ReconcilerSettings, sys.argv[1:])
    raise SystemExit(serve("reconciler", ReconcilerSettings(), start))

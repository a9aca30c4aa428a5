"""How many workers of its own a launcher starts."""

import json

from weft_cli.embedded.launcher import Options
from weft_cli.embedded.state import read_json, write_private


def settled(options: Options) -> int:
    """How many workers this `up` starts; the next one starts as many if it isn't told otherwise.

    A worker that were left out would be a node that fell silent, and its replicas would wait for it.
    """
    known = read_json(options.state.settings) or {}
    workers = int(known.get("workers", 1)) if options.workers is None else options.workers
    if known.get("workers") != workers:
        write_private(options.state.settings, json.dumps({**known, "workers": workers}) + "\n")
    return workers

"""A relay: what happens in a mesh is posted to a receiver, signed. `python -m weft_observer.webhook`."""

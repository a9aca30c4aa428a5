"""An export: what happens in a mesh, as log records by OTLP. `python -m weft_observer.otlp`."""

"""An engine that is made up: it says again what it was told."""

"""Engines of one's own, as an example."""

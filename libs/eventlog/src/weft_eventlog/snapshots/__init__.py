"""Snapshots of folds: what a fold remembers, written down at a log position, so that a start needs only the tail."""

from weft_eventlog.snapshots.keeping import Snapshots
from weft_eventlog.snapshots.mark import Mark

__all__ = ["Mark", "Snapshots"]

"""Snapshots of folds: what a fold remembers, written down at a log position, so that a start needs only the tail."""

from weft_eventlog.snapshots.mark import Mark
from weft_eventlog.snapshots.snapshots import Snapshots

__all__ = ["Mark", "Snapshots"]

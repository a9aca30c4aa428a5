"""Real NATS and Postgres in a fixture; given, when, then over a log in the hand."""

from weft_testing.hand_log import BatchRefused, GuardLost, HandLog

__all__ = ["BatchRefused", "GuardLost", "HandLog"]

"""Real NATS and Postgres in a fixture; given, when, then over a log in the hand."""

from weft_testing.hand_log import GuardLost, HandLog

__all__ = ["GuardLost", "HandLog"]

"""A secret as the log knows it: by name, never by value."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SecretView:
    """The last value that was set for a name."""

    version: int
    sealed: str
    """Under which id the value lies, sealed to the registry's key."""
    set_at: float
    """Seconds since the epoch."""

"""How long the rest of something takes, estimated from how far it is."""

LEAST_S = 2.0
"""Of less time nothing is known of the rate."""
_LEAST_SHARE = 0.01
"""Nor of a smaller part."""
_MINUTE, _HOUR = 60.0, 3600.0


def time_left(done: int, total: int, seconds: float) -> float | None:
    """Seconds that the rest takes at the rate so far; None where the rate isn't known, or nothing is left.

    Args:
        done: bytes so far.
        total: all bytes; 0: not known.
        seconds: that those took which are done.
    """
    if total <= 0 or seconds < LEAST_S or not _LEAST_SHARE * total <= done < total:
        return None
    return (total - done) * seconds / done


def span(seconds: float) -> str:
    """A span as exact as an estimate is: `a few seconds`, `about 40 s`, `about 2 min`, `about 3 h`."""
    if seconds < 7.5:
        return "a few seconds"
    if seconds < 55:
        return f"about {max(round(seconds / 10), 1) * 10} s"
    if seconds < 59.5 * _MINUTE:
        return f"about {max(round(seconds / _MINUTE), 1)} min"
    return f"about {round(seconds / _HOUR)} h"

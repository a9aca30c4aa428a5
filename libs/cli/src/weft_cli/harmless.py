"""What others wrote, made fit for a terminal."""

_KEPT = "\n\t"


def harmless(text: str) -> str:
    """Without control characters: what a model or an engine says must not command a terminal."""
    return "".join(c for c in text if c in _KEPT or (c >= " " and not "\x7f" <= c <= "\x9f"))

"""How long a reason in a fact may be: what others say may be of any length, and a commit may not."""

LONGEST = 2000
"""Characters of a reason that goes into a fact."""
QUOTED = 300
"""Characters of what somebody else said, inside a reason."""


def shortened(text: str, most: int = LONGEST) -> str:
    """The text, or its beginning and an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"

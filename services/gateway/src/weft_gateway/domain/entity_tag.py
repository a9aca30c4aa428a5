"""`If-None-Match` (RFC 9110, 13.1.2)."""


def names(if_none_match: str | None, tag: str) -> bool:
    """Whether the header names this entity tag; weak and strong compare alike."""
    if if_none_match is None:
        return False
    given = [each.strip().removeprefix("W/") for each in if_none_match.split(",")]
    return tag in given or given == ["*"]

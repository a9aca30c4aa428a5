"""A text or token ids, as prompts and what is to be embedded are given."""

from weft_gateway.domain.refused import Refused

HIGHEST_ID = 2**32 - 1


def checked_text(field: str, at: str, text: str) -> str:
    """The text at a place of a field. Raises Refused."""
    if not text:
        raise empty(field, at)
    return text


def checked_ids(field: str, at: str, ids: list[int]) -> list[int]:
    """The token ids at a place of a field: millions are looked at without a step for each. Raises Refused."""
    if not ids:
        raise empty(field, at)
    for wrong in (min(ids), max(ids)):
        if not 0 <= wrong <= HIGHEST_ID:
            what = f"`{at}[{ids.index(wrong)}]` is {str(wrong)[:40]}; a token id is 0 or more."
            raise Refused(400, what, param=field, code="out_of_range")
    return ids


def empty(field: str, at: str) -> Refused:
    """The refusal of nothing."""
    return Refused(400, f"`{at}` is empty; give a text or token ids.", param=field, code="empty")

"""A VRAM budget as an admin says it and as the log keeps it."""

from decimal import Decimal

from weft_contracts.budget import parse_budget
from weft_contracts.facts.values import VramBudget


def said_budget(text: str) -> VramBudget:
    """The budget that a text names; of an empty one: no limit. Raises BadSize."""
    budget = parse_budget(text)
    return VramBudget() if budget is None else VramBudget(share=budget.share, bytes=budget.bytes)


def budget_text(budget: VramBudget) -> str:
    """A text that names this budget; empty for no limit."""
    if budget.share is not None:
        percent = format((Decimal(repr(budget.share)) * 100).normalize(), "f")
        return f"{percent}%" if float(percent) / 100 == budget.share else f"{Decimal(repr(budget.share)):f}"
    if budget.bytes is None:
        return ""
    for unit, size in (("GiB", 1 << 30), ("GB", 10**9), ("MiB", 1 << 20), ("MB", 10**6), ("KiB", 1 << 10)):
        if budget.bytes % size == 0:
            return f"{budget.bytes // size}{unit}"
    return f"{Decimal(budget.bytes) / 1000:f}KB"

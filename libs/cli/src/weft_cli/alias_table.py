"""Aliases as a table, which `weft aliases` and `weft status` show: apart from what one says to set them."""

from weft_client import api

HEAD = ("alias", "model", "share", "state", "ready")


def line(row: api.AliasRow) -> tuple[str, ...]:
    """One of an alias's models."""
    return row.name, row.model, row.share, row.state, f"{row.ready}/{row.wanted}"

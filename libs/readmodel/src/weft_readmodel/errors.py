"""What can go wrong with the tables, by name."""


class FenceHeld(Exception):
    """Another process writes these tables now."""


class FenceLost(Exception):
    """The checkpoint moved under us: another process writes these tables. Nothing of ours was kept."""


class TablesUnavailable(Exception):
    """Postgres did not answer within the bound, or is not there."""

"""How a handler says that it could not do its work. Any other error means: try again."""


class Refused(Exception):
    """It will never be taken: it is counted as a dead letter, and the next one follows. Its text is the reason."""


class Later(Exception):
    """It was not taken this time. Its text is the reason."""

    def __init__(self, why: str, after_s: float = 0.0) -> None:
        """`after_s`: seconds that the next try should wait at least; it waits a minute at most."""
        super().__init__(why)
        self.after_s = after_s

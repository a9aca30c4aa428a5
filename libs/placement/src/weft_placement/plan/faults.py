"""What is wrong with a plan's file."""


class PlanFault(ValueError):
    """One sentence: the field, and what would be right."""

    def __init__(self, where: str, wanted: str) -> None:
        super().__init__(f"{where}: {wanted}")
        self.where = where
        """The field, as a path."""

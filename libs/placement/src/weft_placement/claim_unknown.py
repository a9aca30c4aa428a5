"""Why a claim can't be computed."""


class ClaimUnknown(ValueError):
    """The memory of a replica can't be computed. The message says what is missing."""

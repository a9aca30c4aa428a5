"""What a source can't give, said to people."""


class SourceRefused(Exception):
    """A source that can't be used; the message is one sentence with what is wrong and what would help."""


class SourceAway(SourceRefused):
    """A source that can't be asked now; it may be there again without anybody's doing."""

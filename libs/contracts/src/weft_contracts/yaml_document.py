"""Reads what people write in YAML: strictly, and without a word of what a parser would say."""

from collections.abc import Iterator
from typing import cast

MOST_TEXT = 64 * 1024
MOST_DEPTH = 32


class BadDocument(ValueError):
    """A text that is no YAML, or may become more than it says; what is wrong, in one sentence."""


def document(text: str) -> object:
    """What a YAML text says, in plain values. Raises BadDocument."""
    import yaml  # here: whoever reads no YAML needs no parser

    if len(text) > MOST_TEXT:
        raise BadDocument(f"it has {len(text)} characters, {MOST_TEXT} are allowed")
    try:
        opening = (yaml.FlowSequenceStartToken, yaml.FlowMappingStartToken)
        opening += (yaml.BlockSequenceStartToken, yaml.BlockMappingStartToken)
        closing = (yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken, yaml.BlockEndToken)
        depth = 0
        for token in cast("Iterator[object]", yaml.scan(text)):
            depth += isinstance(token, opening) - isinstance(token, closing)
            if depth > MOST_DEPTH:  # the scanner looks at every level for every token: 30,000 take it 15 s
                raise BadDocument(f"it is nested more than {MOST_DEPTH} levels deep")
            if isinstance(token, yaml.AliasToken):
                raise BadDocument("it uses an alias (*name), which may stand for any number of copies: write it out")
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if isinstance(error, BadDocument):
            raise
        raise BadDocument(f"it is no YAML: {' '.join(str(error).split())[:200]}") from None

"""What a command ends with: a sentence for people, or one JSON document for programs."""

import json
import sys
from collections.abc import Sequence

from weft_client.command_names import pasteable
from weft_client.failure import Exit

JSON = "--json"


def tell(sentence: str, document: object, *, as_json: bool) -> None:
    """Print the one or the other on stdout."""
    if as_json:
        show(document)
    else:
        print(pasteable(sentence))


def show(document: object) -> None:
    """Print a JSON document."""
    print(json.dumps(document, indent=1))


def failed(sentence: str, exit: Exit | int, *, as_json: bool) -> None:
    """Say on stderr why a command failed: a sentence, or `{"error": {"message", "exit"}}`."""
    text = pasteable(sentence)
    said = json.dumps({"error": {"message": text, "exit": int(exit)}}, indent=1) if as_json else f"weft: {text}"
    print(said, file=sys.stderr)


def wants_json(words: Sequence[str]) -> bool:
    """Whether a command line asks for JSON, be the rest of it right or wrong."""
    options = words[: words.index("--")] if "--" in words else words
    return JSON in options

"""What is answered to an inspection: what was found, where the log takes it, else a sentence that it always takes."""

from typing import Final

from weft_contracts.commit import MAX_COMMIT_BYTES
from weft_contracts.facts.machine import FileFound, FileMissing
from weft_contracts.ids import InspectionId
from weft_contracts.shown import shown

MOST_REASON: Final = 2000
"""Characters."""
_NUL: Final = "\\u0000"
"""As JSON has it: nobody reads a commit with it."""
_AROUND: Final = 2
"""Bytes of a commit around its only fact."""


def file_missing(id: InspectionId, source: str, reason: str) -> FileMissing:
    """That there is no usable file; the reason is bounded, and without what can't be written or printed."""
    plain = "".join(each if each.isprintable() else " " for each in reason[:MOST_REASON])
    return FileMissing(inspection=id, source=source, reason=plain)


def answerable(found: FileFound) -> FileFound | FileMissing:
    """The same where it fits into a commit that everybody reads; else why not."""
    try:
        body = found.model_dump_json()
    except ValueError:  # a text with half a character
        why = "what was found of it holds a text that can't be written down"
    else:
        size = len(body.encode()) + _AROUND
        if size <= MAX_COMMIT_BYTES and _NUL not in body:
            return found
        why = "what was found of it holds a text that can't be written down"
        if size > MAX_COMMIT_BYTES:
            why = f"what was found of it takes {size} bytes, and {MAX_COMMIT_BYTES} can be told"
    return file_missing(found.inspection, found.source, f"{shown(found.source)} can't be used: {why}")

"""Which models' files a node is to have by the log, whether they lie there yet or not."""

from collections.abc import Container, Mapping
from typing import Final

from weft_contracts.facts.node import FilesRetired, FilesWanted
from weft_contracts.file_wishes import FileWishes, after_files_retired, after_files_wanted

EXPECTED_KEPT: Final = 1000
"""Files that a node was told to have which are remembered of it, the newest."""


def expected_after(expected: Mapping[str, None], files: str) -> Mapping[str, None]:
    """What a node was told to have, after it was told of these."""
    after = {each: None for each in expected if each != files} | {files: None}
    if len(after) > EXPECTED_KEPT:
        del after[next(iter(after))]
    return after


def wishes_after(wishes: FileWishes, fact: FilesWanted | FilesRetired, there: Container[str]) -> FileWishes:
    """A node's, after one more fact about them. `there`: what lies on its disk."""
    if fact.type == "files_retired":
        return after_files_retired(wishes, fact, there)
    return after_files_wanted(wishes, fact.model_copy(update={"listed": ()}))  # as long as a spec's, for each node


def wants_files(wishes: FileWishes, files: str) -> bool:
    """Whether a node needs these files (`digest.files_digest`) though no replica there does."""
    return files in wishes.wanted

"""Files that huggingface_hub laid into its cache folder before: read, never written, never asked elsewhere.

Its layout: `models--OWNER--NAME/refs/REVISION` holds a commit, `snapshots/COMMIT/…` links to `blobs/ETAG`, and the
etag is the SHA-256 of large files and the blob id in git of small ones.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from weft_contracts.facts.machine import MOST_LICENCE
from weft_contracts.facts.source import HfSource, SourceFile
from weft_contracts.shown import shown

from weft_sources.found import MOST_FOUND, Found, FoundFile
from weft_sources.hub import COMMIT
from weft_sources.refused import SourceRefused

_REVISION: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]*(/[A-Za-z0-9_][A-Za-z0-9._+-]*)*")
_ETAG: Final = re.compile(r"[0-9a-f]{64}|[0-9a-f]{40}")
MOST_CARD: Final = 1 << 20


def find_in_folder(source: HfSource, folder: Path) -> Found | None:
    """What a cache folder has of a repository at its revision; None: nothing. Raises SourceRefused."""
    commit = _commit(source, folder)
    if commit is None:
        return None
    snapshot = _repository(source, folder) / "snapshots" / commit
    found: list[FoundFile] = []
    for path in _files(snapshot):
        if len(found) == MOST_FOUND:
            raise SourceRefused(f"{snapshot} holds more than {MOST_FOUND} files")
        if _inside(path, folder):
            found.append(FoundFile(path.relative_to(snapshot).as_posix(), path.stat().st_size, _checksum(path)))
    if not found:
        return None
    return Found(source.model_copy(update={"revision": commit}), tuple(found), _licence(snapshot / "README.md"))


def file_in_folder(source: HfSource, file: SourceFile, folder: Path) -> Path | None:
    """Where one file lies, if it is there with its size and, as far as the folder tells, its checksum."""
    commit = _commit(source, folder)
    if commit is None:
        return None
    path = _repository(source, folder) / "snapshots" / commit / file.name
    try:
        if not _inside(path, folder) or path.stat().st_size != file.size:
            return None
    except OSError:
        return None
    told = _checksum(path)
    return path if not told or not file.checksum or told == file.checksum else None


def not_there(source: HfSource, folder: Path | None) -> SourceRefused:
    """What to say where a node is offline and has nothing."""
    at = f" at revision {shown(source.revision)}" if source.revision else ""
    where = f"in {folder}" if folder is not None else "and no folder of the hub's files is set"
    return SourceRefused(
        f"{source.repository}{at} is not {where}, and this node is offline (HF_HUB_OFFLINE): download it there first"
        if folder is not None
        else f"{source.repository} can't be asked for: this node is offline (HF_HUB_OFFLINE), {where} (HF_HUB_CACHE)"
    )


def _repository(source: HfSource, folder: Path) -> Path:
    return folder / f"models--{source.repository.replace('/', '--')}"


def _commit(source: HfSource, folder: Path) -> str | None:
    revision = source.revision or "main"
    if COMMIT.fullmatch(revision):
        return revision
    if _REVISION.fullmatch(revision) is None:
        return None
    try:
        with (_repository(source, folder) / "refs" / revision).open("rb") as file:
            said = file.read(64).decode("ascii", "replace").strip()
    except OSError:
        return None
    return said if COMMIT.fullmatch(said) else None


def _files(snapshot: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(snapshot):
        folders.sort()
        yield from (Path(folder, name) for name in sorted(names))


def _inside(path: Path, folder: Path) -> bool:
    """Whether it is an ordinary file that lies under the folder, wherever links lead."""
    try:
        true = path.resolve(strict=True)
        return true.is_file() and true.is_relative_to(folder.resolve(strict=True))
    except OSError:
        return False


def _checksum(path: Path) -> str:
    if not path.is_symlink():
        return ""
    etag = path.readlink().name
    if _ETAG.fullmatch(etag) is None:
        return ""
    return f"sha256:{etag}" if len(etag) == 64 else f"git:{etag}"


def _licence(card: Path) -> str:
    """What the head of a card says, where the card is there."""
    try:
        with card.open("rb") as file:
            head = file.read(MOST_CARD).decode("utf-8", "replace")
    except OSError:
        return ""
    block = re.match(r"---\r?\n(.*?)\n---", head, re.DOTALL)
    said = re.search(r"^license: *([A-Za-z0-9._-]+) *\r?$", block[1], re.MULTILINE) if block else None
    return shown(said[1])[:MOST_LICENCE] if said else ""

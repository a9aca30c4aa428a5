"""What an answer's head says of the file, checked before a byte of its body is read."""

import re
from dataclasses import dataclass
from http.client import HTTPResponse
from typing import Final

from weft_files.faults import Cut, Mismatch, Refused
from weft_files.wanted import Wanted

_RANGE: Final = re.compile(r"bytes ([0-9]{1,19})-([0-9]{1,19})/([0-9]{1,19}|\*)")
_LENGTH: Final = re.compile(r"[0-9]{1,19}")
_STRONG: Final = re.compile(r'"[!#-~]{0,256}"')
_LATER: Final = (408, 425, 429)


@dataclass(frozen=True, slots=True)
class Head:
    """The body holds the bytes from `start` up to `end`; `end` is None where the answer doesn't tell."""

    start: int
    end: int | None
    partial: bool
    etag: str
    """A strong one in its quotes, else empty."""


def read_head(answer: HTTPResponse, wanted: Wanted, span: tuple[int, int] | None, etags: tuple[str, ...]) -> Head:
    """`span`: the range that was asked for, None: the whole file; `etags`: of the redirects before.

    Raises Cut for what may pass, Refused and Mismatch for what won't."""
    if answer.status >= 500 or answer.status in _LATER:
        raise Cut(f"answers {answer.status}")
    if 300 <= answer.status < 400:
        raise Refused("sends a redirect, and this file comes from the address itself")
    if answer.status == 416:
        raise Mismatch(f"has no bytes {span[0] if span else 0} to {span[1] if span else 0}: it is of another size")
    if answer.status not in (200, 206) or (answer.status == 206 and span is None):
        raise Refused(f"answers {answer.status}")
    if (answer.getheader("content-encoding") or "identity").lower() != "identity":
        raise Refused(
            f"sends the encoding {answer.getheader('content-encoding', '')[:40]!r}: want the bytes themselves"
        )
    if (answer.getheader("transfer-encoding") or "chunked").lower() != "chunked":
        raise Refused(f"sends it as {answer.getheader('transfer-encoding', '')[:40]!r}: want chunks or a length")
    etag = answer.getheader("etag") or ""
    _check_etag(wanted, (*etags, etag))
    strong = etag if _STRONG.fullmatch(etag) else ""
    length = _length_of(answer)
    if answer.status == 206:
        assert span is not None
        return _of_range(answer, wanted, span, length, strong)
    most = wanted.cap if wanted.size is None else wanted.size
    if length is not None and length > most:
        raise Mismatch(f"exceeds cap: {length} bytes are announced, {most} are {_which(wanted)}")
    if length is not None and wanted.size is not None and length < wanted.size:
        raise Mismatch(f"is short: {length} bytes are announced, {wanted.size} are wanted")
    if length is None and not answer.chunked and wanted.size is None and not wanted.tells_content:
        raise Refused("tells no length, and neither size nor checksum is known: its end could be a cut")
    return Head(0, length if wanted.size is None else wanted.size, False, strong)


def exceeds(wanted: Wanted, most: int) -> Mismatch:
    return Mismatch(f"exceeds cap: more than {most} bytes come, which are {_which(wanted)}")


def bare(etag: str) -> str:
    """Without quotes and weakness, as hubs write it elsewhere."""
    return etag.removeprefix("W/").strip('"')


def _which(wanted: Wanted) -> str:
    return "the most that we take" if wanted.size is None else "wanted"


def _length_of(answer: HTTPResponse) -> int | None:
    found = answer.headers.get_all("content-length") or []
    if not found or answer.chunked:
        return None
    if len(set(found)) > 1 or not _LENGTH.fullmatch(found[0]):
        raise Refused(f"sends the length {', '.join(found)[:40]!r}: want one number of bytes")
    return int(found[0])


def _of_range(answer: HTTPResponse, wanted: Wanted, span: tuple[int, int], length: int | None, etag: str) -> Head:
    said = answer.getheader("content-range") or ""
    found = _RANGE.fullmatch(said)
    if found is None:
        raise Refused(f"sends the range {said[:60]!r}: want bytes {span[0]}-{span[1] - 1}")
    start, end = int(found[1]), int(found[2]) + 1
    if found[3] != "*" and wanted.size is not None and int(found[3]) != wanted.size:
        raise Mismatch(f"is of another size: {found[3]} bytes are there, {wanted.size} are wanted")
    if start != span[0] or not start < end <= span[1] or (length is not None and length != end - start):
        raise Refused(f"sends the range {said[:60]!r} with {length} bytes: want bytes {span[0]}-{span[1] - 1}")
    return Head(start, end, True, etag)


def _check_etag(wanted: Wanted, etags: tuple[str, ...]) -> None:
    want = wanted.checksum
    if want is None or want.algorithm != "etag":
        return
    came = [bare(each) for each in etags if each]
    if bare(want.digits) not in came:
        raise Mismatch(f"checksum mismatch: etag {', '.join(came)[:100] or 'none'} came, {want} is wanted")

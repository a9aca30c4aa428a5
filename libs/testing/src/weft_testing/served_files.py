"""Files that a small server gives by ranges, as servers of hubs, webs and buckets do."""

import re
from http.server import BaseHTTPRequestHandler
from typing import Final

_RANGE: Final = re.compile(r"bytes=(\d+)-(\d*)")


def send_file(handler: BaseHTTPRequestHandler, body: bytes, headers: dict[str, str], *, ranges: bool = True) -> bytes:
    """Send the head of the answer to GET or HEAD, and give the bytes that belong behind it; 416 where none do."""
    said = handler.headers.get("Range") if ranges else None
    found = _RANGE.fullmatch(said) if said else None
    if found is None:
        handler.send_response(200)
        part = body
    else:
        begin, end = int(found[1]), int(found[2]) if found[2] else len(body) - 1
        part = body[begin : end + 1]
        if not part:
            handler.send_response(416)
            handler.send_header("Content-Range", f"bytes */{len(body)}")
            handler.send_header("Content-Length", "0")
            handler.end_headers()
            return b""
        handler.send_response(206)
        handler.send_header("Content-Range", f"bytes {begin}-{begin + len(part) - 1}/{len(body)}")
    if ranges:
        handler.send_header("Accept-Ranges", "bytes")
    for name, value in {"Content-Length": str(len(part)), **headers}.items():
        handler.send_header(name, value)
    handler.end_headers()
    return b"" if handler.command == "HEAD" else part


def begin_of(handler: BaseHTTPRequestHandler) -> int:
    """Where the range begins that is asked for."""
    found = _RANGE.fullmatch(handler.headers.get("Range") or "")
    return int(found[1]) if found is not None else 0


def send_small(handler: BaseHTTPRequestHandler, status: int, body: bytes = b"", **headers: str) -> None:
    """A whole answer; a header's name is given with `_` for `-`."""
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(body)), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(body)

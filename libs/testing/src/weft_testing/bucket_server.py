"""S3's protocol, path-style: lists of objects, HEAD and GET with ranges, PUT whole or in parts; signed or not.

Source: https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html, API_PutObject.html,
API_CreateMultipartUpload.html
"""

import contextlib
import hashlib
import threading
from collections import Counter
from collections.abc import Callable, Generator
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.sax.saxutils import escape

from weft_testing.loopback_server import LoopbackServer, QuietHandler, serving
from weft_testing.served_files import send_file, send_small
from weft_testing.signature_v4 import BadSignature, check_signature

MOST_KEYS: Final = 1000
"""Of one answer to a list."""
_TIME: Final = "2026-01-01T00:00:00.000Z"


class BucketServer:
    """Objects by bucket and key. A bucket is read by whoever signs with a key of `secrets`, or by all if public; it is
    written by whoever signs with a key that isn't among `readers`."""

    def __init__(self, region: str = "us-east-1") -> None:
        self.region = region
        self.buckets: dict[str, dict[str, bytes]] = {}
        self.public: set[str] = set()
        self.secrets: dict[str, str] = {}
        """Secret keys by access key."""
        self.readers: set[str] = set()
        """Access keys that may only read."""
        self.broken = False
        """Whether it answers everything with 503."""
        self.hold: Callable[[str], None] = lambda said: None
        """Called before each answer with method and path: nothing is done before it returns."""
        self.conditional = True
        """Whether it knows `If-None-Match`; else it says so."""
        self.parts: dict[str, dict[int, bytes]] = {}
        """What came of objects that are put in parts, by the upload's id."""
        self.asked: Counter[str] = Counter()
        """Requests by method and path, without queries."""
        self.signed: Counter[str] = Counter()
        """Requests with a good signature, by where it stood: `header` or `query`."""
        self._lock = threading.Lock()
        bucket = self

        class BucketHandler(QuietHandler):
            def do_GET(self) -> None:
                bucket._answer(self)

            do_HEAD = do_GET
            do_PUT = do_GET
            do_POST = do_GET
            do_DELETE = do_GET

        self.server = LoopbackServer(BucketHandler)
        self.url = self.server.url

    def put(self, bucket: str, key: str, body: bytes) -> None:
        """Lay an object into a bucket, which is made if it isn't there."""
        self.buckets.setdefault(bucket, {})[key] = body

    def _answer(self, handler: QuietHandler) -> None:
        parts = urlsplit(handler.path)
        with self._lock:
            self.asked[f"{handler.command} {unquote(parts.path)}"] += 1
        name, _, key = unquote(parts.path).lstrip("/").partition("/")
        headers = {header.lower(): value for header, value in handler.headers.items()}
        sent = handler.rfile.read(int(headers.get("content-length", "0")))
        self.hold(f"{handler.command} {unquote(parts.path)}")
        if self.broken:
            return _fault(handler, 503, "SlowDown", "Please reduce your request rate.")
        signer = ""
        if "authorization" in headers or "X-Amz-Signature=" in parts.query:
            try:
                signer = check_signature(
                    handler.command, parts.path, parts.query, headers, self.secrets, self.region, sent
                )
            except BadSignature as fault:
                return _fault(handler, 400 if "Malformed" in fault.code else 403, fault.code, str(fault))
            with self._lock:
                self.signed["query" if "X-Amz-Signature=" in parts.query else "header"] += 1
        elif name not in self.public:
            return _fault(handler, 403, "AccessDenied", "Access Denied")
        objects = self.buckets.get(name)
        if objects is None:
            return _fault(handler, 404, "NoSuchBucket", "The specified bucket does not exist")
        if handler.command not in ("GET", "HEAD"):
            if not signer or signer in self.readers:
                return _fault(handler, 403, "AccessDenied", "Access Denied")
            fields = dict(parse_qsl(parts.query, keep_blank_values=True))
            return self._write(handler, objects, key, fields, headers, sent)
        if not key:
            return self._list(handler, name, objects, dict(parse_qsl(parts.query)))
        if key not in objects:
            return _fault(handler, 404, "NoSuchKey", "The specified key does not exist.")
        body = objects[key]
        about = {"ETag": f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'}
        about["Last-Modified"] = "Thu, 01 Jan 2026 00:00:00 GMT"
        handler.wfile.write(send_file(handler, body, about))
        return None

    def _write(
        self,
        handler: QuietHandler,
        objects: dict[str, bytes],
        key: str,
        fields: dict[str, str],
        headers: dict[str, str],
        sent: bytes,
    ) -> None:
        """One object, or a step of one in parts."""
        upload = fields.get("uploadId", "")
        tag = f'"{hashlib.md5(sent, usedforsecurity=False).hexdigest()}"'
        match handler.command:
            case "PUT" | "POST" if upload and upload not in self.parts:
                return _fault(handler, 404, "NoSuchUpload", "The specified upload does not exist")
            case "PUT" if upload:
                self.parts[upload][int(fields["partNumber"])] = sent
                return send_small(handler, 200, ETag=tag)
            case "PUT":
                if "if-none-match" in headers and not self.conditional:
                    return _fault(handler, 501, "NotImplemented", "If-None-Match is not implemented")
                with self._lock:
                    if "if-none-match" in headers and key in objects:
                        return _fault(handler, 412, "PreconditionFailed", "The object is there")
                    objects[key] = sent
                return send_small(handler, 200, ETag=tag)
            case "POST" if "uploads" in fields:
                upload = f"upload-{len(self.parts)}"
                self.parts[upload] = {}
                body = f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
                return send_small(handler, 200, body.encode(), Content_Type="application/xml")
            case "POST" if upload:
                objects[key] = b"".join(part for _, part in sorted(self.parts.pop(upload).items()))
                body = '<CompleteMultipartUploadResult><ETag>"parts"</ETag></CompleteMultipartUploadResult>'
                return send_small(handler, 200, body.encode(), Content_Type="application/xml")
            case "DELETE" if upload:
                self.parts.pop(upload, None)
                return send_small(handler, 204)
            case _:
                return _fault(handler, 405, "MethodNotAllowed", "Nothing here is removed")

    def _list(self, handler: QuietHandler, name: str, objects: dict[str, bytes], query: dict[str, str]) -> None:
        """ListObjectsV2: keys in order from behind the token, a thousand at a time; folders where a delimiter is."""
        prefix, after, delimiter = query.get("prefix", ""), query.get("continuation-token", ""), query.get("delimiter")
        keys = sorted(key for key in objects if key.startswith(prefix) and key > after)
        page, more = keys[:MOST_KEYS], len(keys) > MOST_KEYS
        folders: list[str] = []
        if delimiter:
            inner = {key: key[len(prefix) :].partition(delimiter) for key in page}
            folders = sorted({f"{prefix}{head}{delimiter}" for head, mark, _ in inner.values() if mark})
            page = [key for key, (_, mark, _) in inner.items() if not mark]
        entries = "".join(_entry(key, objects[key]) for key in page)
        common = "".join(f"<CommonPrefixes><Prefix>{escape(each)}</Prefix></CommonPrefixes>" for each in folders)
        token = f"<NextContinuationToken>{escape(keys[MOST_KEYS - 1])}</NextContinuationToken>" if more else ""
        body = (
            '<?xml version="1.0" encoding="UTF-8"?>'
            '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<Name>{name}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(page)}</KeyCount>"
            f"<MaxKeys>{MOST_KEYS}</MaxKeys><IsTruncated>{str(more).lower()}</IsTruncated>"
            f"{token}{entries}{common}</ListBucketResult>"
        )
        return send_small(handler, 200, body.encode(), Content_Type="application/xml")


@contextlib.contextmanager
def bucket_server(region: str = "us-east-1") -> Generator[BucketServer]:
    """One that answers until the context ends; requests must be signed for its region."""
    bucket = BucketServer(region)
    with serving(bucket.server):
        yield bucket


def _entry(key: str, body: bytes) -> str:
    etag = hashlib.md5(body, usedforsecurity=False).hexdigest()
    return (
        f"<Contents><Key>{escape(key)}</Key><LastModified>{_TIME}</LastModified><ETag>&quot;{etag}&quot;</ETag>"
        f"<Size>{len(body)}</Size><StorageClass>STANDARD</StorageClass></Contents>"
    )


def _fault(handler: QuietHandler, status: int, code: str, message: str) -> None:
    body = f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>{escape(message)}</Message></Error>'
    return send_small(handler, status, body.encode(), Content_Type="application/xml")

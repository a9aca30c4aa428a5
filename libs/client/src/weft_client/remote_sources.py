"""What people type for a model that workers fetch: a hub's repository, an address of the web, a bucket.

Forms of a hub: `owner/name`, `hf:owner/name`, either with `:Q4_K_M` or `:FILE.gguf` and with `@REVISION`; and what a
browser shows, `https://huggingface.co/owner/name`, its `/tree/`, `/blob/` and `/resolve/` too. What
`source_keys.source_key` prints is read back as the same, ` secret:NAME` at its end too.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from weft_contracts.engines.profile import FileFormat
from weft_contracts.facts.source import HfSource, HttpsSource, RemoteSource, S3Source
from weft_contracts.source_faults import fault_of_bucket, fault_of_region, fault_of_remote, fault_of_repository
from weft_contracts.source_keys import parted_secret

from weft_client.failure import Exit, Failure

HUBS: Final = frozenset(("huggingface.co", "www.huggingface.co", "hf.co"))
"""Hosts whose pages name repositories."""
FORMS: Final = (
    "owner/name, hf:owner/name[:Q4_K_M][@revision], https://HOST/FILE.gguf, s3://BUCKET/KEY, path:PATH, builtin:NAME,"
    " and a file of this machine with --upload"
)
"""For sentences."""
_BARE: Final = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(:[^\s:@]+)?(@[^\s:@]+)?(:[^\s:@]+)?", re.ASCII)
_GGUF_NAMED: Final = re.compile(r"(^|[-_.])gguf($|[-_.])", re.IGNORECASE)
_KINDS_OF_PAGES: Final = ("datasets", "spaces", "docs", "models", "api", "collections", "papers")


def remote_source(text: str) -> RemoteSource | None:
    """The source that workers fetch, where a text names one; None for any other source.

    Raises Failure with status 2 for one that can't be meant, and for a name that is a repository's and a path's here.
    """
    place, secret = parted_secret(text)
    if secret:
        source = remote_source(place)
        return None if source is None else _checked(text, source.model_copy(update={"secret": secret}))
    scheme, colon, rest = text.partition(":")
    scheme = scheme.lower() if colon else ""
    if scheme == "hf":
        return _checked(text, _of_hub(text, rest.removeprefix("//")))
    if scheme in ("https", "http") and rest.startswith("//"):
        return _checked(text, _of_web(text))
    if scheme == "s3" and rest.startswith("//"):
        return _checked(text, _of_bucket(text, rest[2:]))
    if not _is_bare(text):
        return None
    if Path(text).expanduser().exists():
        what = "folder" if Path(text).is_dir() else "file"
        raise Failure(
            f"{text} is a {what} here, and is written as a hub's repository: say path:{text} or hf:{text}", Exit.USAGE
        )
    return _checked(text, _of_hub(text, text))


def format_of(source: RemoteSource) -> FileFormat:
    """The format that its files are likely in, by their names: nothing was looked at yet."""
    match source:
        case HfSource():
            gguf = bool(source.file) or _GGUF_NAMED.search(source.repository.rpartition("/")[2]) is not None
        case HttpsSource():
            gguf = True
        case S3Source():
            gguf = source.key != "" and not source.key.endswith("/")
    return "gguf" if gguf else "safetensors"


def title_of(source: RemoteSource) -> str:
    """What a model of this source is called by those who know it: the repository's name, or its file's or folder's."""
    match source:
        case HfSource():
            return source.repository
        case HttpsSource():
            parts = urlsplit(source.url)
            return unquote(parts.path.rstrip("/").rpartition("/")[2]) or parts.netloc
        case S3Source():
            return source.key.rstrip("/").rpartition("/")[2] or source.bucket


def _is_bare(text: str) -> bool:
    """Whether it is written as a repository alone is: a GGUF file in a folder is a path."""
    return _BARE.fullmatch(text) is not None and not (text.lower().endswith(".gguf") and ":" not in text)


def _of_hub(text: str, name: str) -> RemoteSource:
    """`owner/name`, with `:FILE` and `@REVISION` in any order; or `#FILE`, as keys have it."""
    where, hash, named = name.partition("#")
    repository, at, revision = where.partition("@")
    repository, colon, file = repository.partition(":")
    revision, late, later = revision.partition(":")
    if (colon != "") + (late != "") + (hash != "") > 1:
        raise Failure(f"{text} names two files: want hf:owner/name:Q4_K_M@revision", Exit.USAGE)
    lacking = (at and not revision) or (colon and not file) or (late and not later) or (hash and not named)
    if lacking:
        raise Failure(f"{text} ends too early: want hf:owner/name:Q4_K_M@revision", Exit.USAGE)
    return _hub(text, repository, unquote(revision), file or later or unquote(named))


def _hub(text: str, repository: str, revision: str = "", file: str = "") -> RemoteSource:
    if (fault := fault_of_repository(repository)) is not None:
        raise Failure(f"{text}: the repository {fault}", Exit.USAGE)
    return HfSource.model_construct(repository=repository, revision=revision, file=file)


def _of_web(text: str) -> RemoteSource:
    try:
        parts = urlsplit(text)
        host = parts.hostname
    except ValueError as error:
        raise Failure(f"{text} is no URL: {error}", Exit.USAGE) from error
    if host not in HUBS or parts.username is not None:
        return HttpsSource.model_construct(url=text)
    return _of_page(text, [unquote(part) for part in parts.path.split("/") if part])


def _of_page(text: str, parts: Sequence[str]) -> RemoteSource:
    """A repository from the address that a browser shows."""
    wanted = "want https://huggingface.co/OWNER/NAME, or the address of a GGUF file in it"
    if parts and parts[0] in _KINDS_OF_PAGES:
        raise Failure(f"{text} is no model's repository: {wanted}", Exit.USAGE)
    match parts:
        case [_, _]:
            return _hub(text, "/".join(parts))
        case [owner, name, "tree" | "blob" | "resolve" | "raw" as what, *rest] if rest:
            revision, file = _split(rest)
            if what == "tree" and file:
                raise Failure(f"{text} is a folder of a repository: {wanted}", Exit.USAGE)
            if what != "tree" and not file.lower().endswith(".gguf"):
                other = f"hf:{owner}/{name}@{revision}"
                raise Failure(f"{text} is one file, and no GGUF file: want the whole repository, {other}", Exit.USAGE)
            return _hub(text, f"{owner}/{name}", revision, file)
        case _:
            raise Failure(f"{text} is no model's repository: {wanted}", Exit.USAGE)


def _split(rest: Sequence[str]) -> tuple[str, str]:
    """Revision and file: a revision of several parts begins with `refs`."""
    length = 3 if rest[0] == "refs" and len(rest) >= 3 else 1
    return "/".join(rest[:length]), "/".join(rest[length:])


def _of_bucket(text: str, rest: str) -> RemoteSource:
    place, _, query = rest.partition("?")
    bucket, _, key = place.partition("/")
    said = parse_qsl(query, keep_blank_values=True)
    other = next((name for name, _ in said if name not in ("region", "endpoint")), None)
    if other is not None:
        raise Failure(
            f"{text} says {other!r}: want s3://BUCKET/KEY?region=…&endpoint=…, of these two alone", Exit.USAGE
        )
    told = dict(said)
    region = told.get("region", "us-east-1")
    for name, fault in (("bucket", fault_of_bucket(bucket)), ("region", fault_of_region(region))):
        if fault is not None:
            raise Failure(f"{text}: the {name} {fault}", Exit.USAGE)
    endpoint = told.get("endpoint", "")
    return S3Source.model_construct(bucket=bucket, key=unquote(key), region=region, endpoint=endpoint)


def _checked(text: str, source: RemoteSource) -> RemoteSource:
    """Raises Failure for what the gateway would refuse."""
    if (fault := fault_of_remote(source)) is not None:
        raise Failure(f"{text}: the {fault.field} {fault.fault}", Exit.USAGE)
    return type(source).model_validate(source.model_dump())

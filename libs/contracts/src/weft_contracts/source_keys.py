"""A source as one line of text: how inspections name it, and what people may type."""

import re
from urllib.parse import parse_qsl, quote, unquote, urlencode

from pydantic import ValidationError

from weft_contracts.facts.source import (
    BuiltinSource,
    HfSource,
    HttpsSource,
    PathSource,
    S3Source,
    SimulatedSource,
    Source,
    UploadSource,
)
from weft_contracts.secrets import NAMED, SECRET_NAME
from weft_contracts.shown import public, shown

_SECRET = re.compile(rf" {NAMED}({SECRET_NAME})")
"""Behind the key of a source whose secret is named. Nothing before it holds a space."""
_COMMIT = re.compile("[0-9a-f]{40}")
_WANTED = (
    "hf:<repository>[@<revision>][#<file>], https://<address>, s3://<bucket>/<key>, path:<path>, upload:<file>, "
    "builtin:<name> or simulated:"
)


class NoSource(ValueError):
    """A text that names no source; the message is a sentence for people."""


def source_key(source: Source) -> str:
    """One line that names the source and no other; `source_of` reads it."""
    secret = secret_of(source)
    return f"{place_key(source)} {NAMED}{secret}" if secret else place_key(source)


def secret_of(source: Source) -> str:
    """The secret that a source names; empty: none."""
    return source.secret if isinstance(source, HfSource | HttpsSource | S3Source) else ""


def parted_secret(key: str) -> tuple[str, str]:
    """What stands before ` secret:NAME` at a key's end, and that name; empty: there is none."""
    place, space, named = key.rpartition(" ")
    found = _SECRET.fullmatch(space + named)
    return (place, found[1]) if found is not None else (key, "")


def secret_named(key: str) -> str:
    """The secret that a source's key names; empty: none, or it is no key."""
    try:
        return secret_of(source_of(key))
    except NoSource:
        return ""


def place_key(source: Source) -> str:
    """The key without the secret: what lies there is the same with any that is let in."""
    match source:
        case BuiltinSource(name=name):
            return f"builtin:{name}"
        case PathSource(path=path):
            return f"path:{path}"
        case SimulatedSource():
            return "simulated:"
        case HfSource():
            revision = f"@{quote(source.revision, safe='/')}" if source.revision else ""
            file = f"#{quote(source.file, safe='/')}" if source.file else ""
            return f"hf:{source.repository}{revision}{file}"
        case UploadSource(name=name):
            return f"upload:{name}"
        case HttpsSource(url=url):
            return url
        case S3Source():
            said = {"region": source.region, "endpoint": source.endpoint}
            other = {name: text for name, text in said.items() if text != S3Source.model_fields[name].default}
            query = f"?{urlencode(other)}" if other else ""
            return f"s3://{source.bucket}/{quote(source.key, safe='/')}{query}"


def told_source(source: Source) -> str:
    """A source as people and logs may see it, the one way in which it is named to them: its key, without a commit that
    it is pinned to, and of an address or a bucket without user, query and fragment; at most 160 characters."""
    match source:
        case HfSource(revision=revision) if _COMMIT.fullmatch(revision):
            return shown(place_key(source.model_copy(update={"revision": ""})))
        case HttpsSource(url=url):
            return public(url)
        case S3Source():
            return shown(f"s3://{source.bucket}/{source.key}")
        case _:
            return shown(place_key(source))


def source_of(key: str) -> Source:
    """A source from its key. Raises NoSource."""
    place, secret = parted_secret(key)
    if secret and key.partition(":")[0] in ("hf", "https", "http", "s3"):
        return _with_secret(key, source_of(place), secret)
    scheme, colon, rest = key.partition(":")
    try:
        match scheme if colon else "":
            case "builtin":
                return BuiltinSource(name=rest)
            case "path":
                return PathSource(path=rest)
            case "simulated":
                return SimulatedSource()
            case "upload":
                return UploadSource(name=rest)
            case "hf":
                where, _, file = rest.partition("#")
                repository, _, revision = where.partition("@")
                return HfSource(repository=repository, revision=unquote(revision), file=unquote(file))
            case "https" | "http":
                return HttpsSource(url=key)
            case "s3" if rest.startswith("//"):
                place, _, query = rest[2:].partition("?")
                bucket, _, object_key = place.partition("/")
                said = dict(parse_qsl(query))
                return S3Source(
                    bucket=bucket,
                    key=unquote(object_key),
                    region=said.get("region", "us-east-1"),
                    endpoint=said.get("endpoint", ""),
                )
            case _:
                pass
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(str(part) for part in fault["loc"])
        raise NoSource(f"{key[:200]!r} is no source: its {where} is not one ({fault['msg']})") from None
    raise NoSource(f"{key[:200]!r} is no source: want {_WANTED}")


def _with_secret(key: str, source: Source, secret: str) -> Source:
    if not isinstance(source, HfSource | HttpsSource | S3Source) or source.secret:
        raise NoSource(f"{key[:200]!r} is no source: want one secret, of a source that workers fetch")
    return source.model_copy(update={"secret": secret})

"""What a bucket has under a key or a prefix, and addresses that are signed for its objects."""

import base64
import binascii
import re
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

from weft_contracts.facts.source import MOST_FILES, S3Source
from weft_contracts.shown import public, shown
from weft_files.address import Address
from weft_files.faults import Cut, Refused

from weft_sources.asking import Answer, ask, retried
from weft_sources.found import MOST_FOUND, Found, FoundFile
from weft_sources.gguf_choice import PART, is_gguf
from weft_sources.refused import SourceAway, SourceRefused
from weft_sources.settings import SourceSettings
from weft_sources.web import check_status

if TYPE_CHECKING:
    from obstore.store import S3Credential, S3Store

STATUS: Final = re.compile(r"status code: ([0-9]{3}) ")
"""In what obstore says of an answer; it stands before anything that the server said."""
SIGNED_FOR: Final = timedelta(hours=12)
"""How long an address may be asked: 20 GB take four and a half hours at 10 Mbit/s."""
CONNECT: Final = timedelta(seconds=15)


def find_in_bucket(source: S3Source, settings: SourceSettings) -> Found:
    """The object of a key with its parts, or all objects under a prefix. Raises SourceRefused.

    One request an object, or one for each 1,000 under a prefix.
    """
    if source.key and not source.key.endswith("/"):
        return _objects(source, settings)
    return _folder(source, settings)


def bucket_address(source: S3Source, name: str, settings: SourceSettings) -> Address:
    """Where an object may be asked for: signed for twelve hours where there are keys. Raises SourceRefused."""
    key = _key(source, name)
    said = f"s3://{source.bucket}/{shown(key)}"
    if not settings.s3_access_key:
        return Address(f"{endpoint_of(source)}/{source.bucket}/{quote(key, safe='/~')}", said=said)
    import obstore

    try:
        return Address(obstore.sign(_store(source, settings), "GET", key, SIGNED_FOR), said=said)
    except (ValueError, TypeError, obstore.exceptions.BaseError):  # TypeError: a key with an empty part
        raise SourceRefused(f"{said} can't be asked for: want a key without empty parts, and S3 keys for it") from None


def endpoint_of(source: S3Source) -> str:
    """The server's URL, without a slash at its end."""
    if source.endpoint:
        return source.endpoint.rstrip("/")
    return f"https://s3.{source.region}.amazonaws.com{'.cn' if source.region.startswith('cn-') else ''}"


def _objects(source: S3Source, settings: SourceSettings) -> Found:
    name = source.key.rpartition("/")[2]
    if not is_gguf(name):
        raise SourceRefused(
            f"s3://{source.bucket}/{shown(source.key)} is no GGUF file's key: name one that ends with .gguf, or a "
            f"folder with / at its end"
        )
    part = PART.fullmatch(name)
    if part is None:
        return Found(source, (_look(source, name, settings),))
    told = int(part[3])
    if int(part[2]) != 1 or not 1 <= told <= MOST_FILES:
        raise SourceRefused(f"{shown(name)} is one of {told} parts: name the first, and at most {MOST_FILES} in all")
    names = [f"{part[1]}-{number:05}-of-{part[3]}{name[-5:]}" for number in range(1, told + 1)]
    return Found(source, tuple(_look(source, each, settings) for each in names))


def _look(source: S3Source, name: str, settings: SourceSettings) -> FoundFile:
    address = bucket_address(source, name, settings)

    def look() -> FoundFile:
        with ask(address, settings, first=0, last=0, most=1 << 16) as answer:
            check_answer(answer, source, address.said, settings)
            size = answer.total()
            if size is None:
                raise SourceRefused(f"{address.said} has no length: see that {public(endpoint_of(source))} speaks S3")
            return FoundFile(name, size, _checksum(answer))

    return retried(look, address.said)


def check_answer(answer: Answer, source: S3Source, said: str, settings: SourceSettings) -> None:
    """Raises SourceRefused for what is no answer with an object, and SourceAway where it may be one later."""
    if answer.status in (401, 403):
        raise _forbidden(said, settings)
    if answer.status == 404:
        raise SourceRefused(f"{said} is not there: check bucket and key at {public(endpoint_of(source))}")
    if answer.status in (301, 307, 400):
        raise SourceRefused(f"{said} answers {answer.status}: check its region ({source.region}) and its endpoint")
    check_status(answer, said)


def _forbidden(said: str, settings: SourceSettings) -> SourceRefused:
    remedy = (
        "see that the workers' S3 keys are right and may read it"
        if settings.s3_access_key
        else "give the workers S3 keys (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)"
    )
    return SourceRefused(f"{said} may not be read: {remedy}")


def _checksum(answer: Answer) -> str:
    """The SHA-256 of the whole object where the server says it; an etag of S3 tells no content."""
    try:
        digest = base64.b64decode(answer.headers.get("x-amz-checksum-sha256", ""), validate=True)
    except (binascii.Error, ValueError):
        digest = b""
    if len(digest) == 32 and answer.status == 200:
        return f"sha256:{digest.hex()}"
    etag = answer.etag()
    return f"etag:{etag}" if etag else ""


def _folder(source: S3Source, settings: SourceSettings) -> Found:
    import obstore

    said, found = f"s3://{source.bucket}/{shown(source.key)}", list[FoundFile]()
    try:
        settings.reach.place(endpoint_of(source), settings.timeout_s)
        for objects in obstore.list(_store(source, settings), source.key.rstrip("/") or None, chunk_size=1000):
            for each in objects:
                if len(found) == MOST_FOUND:
                    raise SourceRefused(f"{said} holds more than {MOST_FOUND} objects: name a folder of one model")
                found.append(_listed(source, each))
    except (Refused, Cut) as fault:
        kind = SourceAway if isinstance(fault, Cut) else SourceRefused
        raise kind(f"{public(endpoint_of(source))} {fault}") from None
    except (ValueError, OSError, obstore.exceptions.BaseError) as error:
        raise _not_listed(source, said, settings, str(error)) from None
    if not found:
        raise SourceRefused(f"{said} holds no object: check the folder's name")
    return Found(source, tuple(found))


def _not_listed(source: S3Source, said: str, settings: SourceSettings, error: str) -> SourceRefused:
    """What obstore's sentence comes to."""
    status = found[1] if (found := STATUS.search(error)) else ""
    where = public(endpoint_of(source))
    match status:
        case "401" | "403":
            return _forbidden(said, settings)
        case "404":
            return SourceRefused(f"{said} is not there: check the bucket at {where}")
        case "" | "429" | "500" | "502" | "503" | "504":
            return SourceAway(f"{where} does not list {said} now: see that this node reaches it, or try again later")
        case _:
            return SourceRefused(f"{where} answers {status} for {said}: check its region ({source.region})")


def _listed(source: S3Source, each: Any) -> FoundFile:
    etag = (each["e_tag"] or "").strip('"')
    name = str(each["path"]).removeprefix(source.key)
    return FoundFile(name, int(each["size"]), f"etag:{etag}" if etag.isascii() and etag.isalnum() else "")


def _key(source: S3Source, name: str) -> str:
    folder = source.key if source.key.endswith("/") or not source.key else f"{source.key.rpartition('/')[0]}/"
    return f"{folder.lstrip('/')}{name}"


def _store(source: S3Source, settings: SourceSettings) -> "S3Store":
    keys = (settings.s3_access_key, settings.s3_secret_key, settings.s3_session_token)
    return opened(source.bucket, endpoint_of(source), source.region, settings.timeout_s, keys)


@lru_cache(maxsize=8)
def opened(bucket: str, endpoint: str, region: str, timeout_s: float, keys: tuple[str, str, str]) -> "S3Store":
    """A bucket to which each request may take so long. Nothing of it comes from the environment or from the machine's
    cloud: neither keys nor endpoint nor proxies.

    Opening one costs 6 ms, signing an address with it a hundredth of that, so that a few are kept.
    """
    from obstore.store import S3Store

    access, secret, session = keys
    wait = timedelta(seconds=timeout_s)

    def credential() -> "S3Credential":
        said: S3Credential = {
            "access_key_id": access,
            "secret_access_key": secret,
            "token": session or None,
            "expires_at": None,
        }
        return said

    return S3Store(
        bucket,
        config={
            "endpoint": endpoint,
            "aws_endpoint_url_s3": endpoint,
            "region": region,
            "skip_signature": not access,
            "virtual_hosted_style_request": False,
        },
        client_options={
            "allow_http": urlsplit(endpoint).scheme == "http",
            "connect_timeout": min(wait, CONNECT),
            # Else it would ask the environment's proxies, which nothing else here does: one for no host is put first.
            "proxy_url": "http://localhost",
            "proxy_excludes": f"*,{urlsplit(endpoint).hostname}",
            "timeout": wait,
        },
        retry_config={"max_retries": 2, "retry_timeout": wait},
        credential_provider=credential if access else None,
    )

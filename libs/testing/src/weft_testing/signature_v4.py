"""AWS's Signature Version 4 as a server checks it: in the header `Authorization`, or in the query of an address.

Source: https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-authenticating-requests.html
"""

import hashlib
import hmac
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import parse_qsl, quote, unquote

ALGORITHM: Final = "AWS4-HMAC-SHA256"
MOST_SKEW: Final = timedelta(minutes=15)
_HEADER: Final = re.compile(rf"{ALGORITHM} Credential=([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{{64}})")


class BadSignature(Exception):
    """A request that isn't signed as it should be; `code` is S3's name for it."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


def check_signature(
    method: str,
    path: str,
    query: str,
    headers: Mapping[str, str],
    secrets: Mapping[str, str],
    region: str,
    body: bytes = b"",
) -> str:
    """The access key that signed a request. `path` and `query` as they were sent; `headers` by lower-case name.

    Raises BadSignature.
    """
    fields = dict(parse_qsl(query, keep_blank_values=True))
    if "X-Amz-Signature" in fields:
        return _check_query(method, path, query, fields, headers, secrets, region)
    found = _HEADER.fullmatch(headers.get("authorization", ""))
    if found is None:
        raise BadSignature("AccessDenied", "the request is not signed")
    stated = headers.get("x-amz-content-sha256", "")
    if stated not in (hashlib.sha256(body).hexdigest(), "UNSIGNED-PAYLOAD"):
        raise BadSignature("XAmzContentSHA256Mismatch", "the request says the hash of another body")
    when = headers.get("x-amz-date", "")
    if abs(datetime.now(UTC) - _time(when)) > MOST_SKEW:
        raise BadSignature("RequestTimeTooSkewed", "the request is of another time")
    unsigned = {name for name in headers if name.startswith("x-amz-")} - set(found[2].split(";"))
    if unsigned:
        raise BadSignature("AccessDenied", f"headers were sent that are not signed: {sorted(unsigned)}")
    canonical = _canonical(method, path, query, found[2], headers, stated)
    return _compare(found[1], when, canonical, found[3], secrets, region)


def _check_query(
    method: str,
    path: str,
    query: str,
    fields: Mapping[str, str],
    headers: Mapping[str, str],
    secrets: Mapping[str, str],
    region: str,
) -> str:
    if fields.get("X-Amz-Algorithm") != ALGORITHM:
        raise BadSignature("AuthorizationQueryParametersError", f"want the algorithm {ALGORITHM}")
    when, lasts = fields.get("X-Amz-Date", ""), int(fields.get("X-Amz-Expires", "0"))
    if not 1 <= lasts <= 604_800:
        raise BadSignature("AuthorizationQueryParametersError", "an address is signed for a week at most")
    if datetime.now(UTC) > _time(when) + timedelta(seconds=lasts):
        raise BadSignature("AccessDenied", "the address has run out")
    rest = "&".join(each for each in query.split("&") if not each.startswith("X-Amz-Signature="))
    canonical = _canonical(method, path, rest, fields.get("X-Amz-SignedHeaders", ""), headers, "UNSIGNED-PAYLOAD")
    return _compare(fields.get("X-Amz-Credential", ""), when, canonical, fields["X-Amz-Signature"], secrets, region)


def _compare(
    credential: str, when: str, canonical: str, signature: str, secrets: Mapping[str, str], region: str
) -> str:
    key, _, scope = credential.partition("/")
    if scope != f"{when[:8]}/{region}/s3/aws4_request":
        raise BadSignature("AuthorizationHeaderMalformed", f"the region is wrong; expecting {region!r}")
    if key not in secrets:
        raise BadSignature("InvalidAccessKeyId", "there is no such access key")
    signing = f"AWS4{secrets[key]}".encode()
    for part in scope.split("/"):
        signing = hmac.digest(signing, part.encode(), "sha256")
    text = "\n".join((ALGORITHM, when, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    if not hmac.compare_digest(hmac.new(signing, text.encode(), "sha256").hexdigest(), signature):
        raise BadSignature("SignatureDoesNotMatch", "the signature is of another request or another secret")
    return key


def _canonical(method: str, path: str, query: str, signed: str, headers: Mapping[str, str], payload: str) -> str:
    names = signed.split(";")
    if "host" not in names:
        raise BadSignature("AuthorizationHeaderMalformed", "the host is not signed")
    pairs = sorted(
        (quote(name, safe="-_.~"), quote(value, safe="-_.~"))
        for name, value in parse_qsl(query, keep_blank_values=True)
    )
    lines = "".join(f"{name}:{' '.join(headers.get(name, '').split())}\n" for name in names)
    said = "&".join(f"{name}={value}" for name, value in pairs)
    return "\n".join((method, quote(unquote(path), safe="/-_.~"), said, lines, signed, payload))


def _time(said: str) -> datetime:
    try:
        return datetime.strptime(said, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        raise BadSignature("AccessDenied", "the request says no time") from None

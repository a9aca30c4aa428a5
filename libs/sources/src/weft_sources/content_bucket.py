"""Files in a bucket by their content, `<prefix>/<algorithm>/<digits>`: whether one is there, and putting it there."""

import asyncio
import threading
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlsplit

from weft_contracts.facts.source import S3Source
from weft_contracts.shown import public
from weft_contracts.source_keys import source_of
from weft_files.address import Address
from weft_files.checksum import Checksum
from weft_files.faults import Cut, Refused
from weft_files.reach import Reach

from weft_sources.asking import ask
from weft_sources.bucket import STATUS, bucket_address, check_answer, endpoint_of, opened
from weft_sources.refused import SourceAway, SourceRefused
from weft_sources.settings import SourceSettings

if TYPE_CHECKING:
    from obstore.store import S3Store

WANTED: Final = "want s3://<bucket>/<prefix>, and behind it ?endpoint=<URL>&region=<name> where it isn't Amazon's"
PART: Final = 8 << 20
"""Bytes of one request where a file is larger; two are on their way at a time, so memory is flat."""
MOST_PARTS: Final = 9_000
"""S3 takes 10,000. Of a file of more than 70 GiB the parts are larger."""
LEAST: Final = 512 * 1024
"""Bytes a second that a whole put must come to, beside `BASE_S`."""
BASE_S: Final = 60.0
LOOK_S: Final = 5.0
"""For each phase of the one request by which it is looked whether a file is there."""
PART_S: Final = 300.0
"""For one part, in all of its three tries together."""
ABORT_S: Final = 2.0
"""For a put that is called off to have its parts removed there: less than a service waits for it at its end."""
_AT_ONCE: Final = 2
_PREFIX_BYTES: Final = 512


def bucket_of(text: str) -> S3Source:
    """The place that `s3://bucket/prefix` names, with a source's own `?endpoint=…&region=…`.

    Raises ValueError with one sentence, which repeats nothing of the text.
    """
    try:
        source = source_of(text)
        unknown = {name for name, _ in parse_qsl(urlsplit(text).query)} - {"endpoint", "region"}
    except ValueError:
        raise ValueError(f"names no bucket: {WANTED}") from None
    if not isinstance(source, S3Source):
        raise ValueError(f"names no bucket: {WANTED}")
    if source.secret or unknown:
        raise ValueError(f"has more than a bucket, a prefix, an endpoint and a region: {WANTED}")
    if source.endpoint and not _is_server(source.endpoint):
        raise ValueError("has an endpoint that is none: want https://<host>[:<port>] and nothing more")
    parts = source.key.strip("/").split("/") if source.key.strip("/") else []
    if len(source.key) > _PREFIX_BYTES or any(part in ("", ".", "..") or not part.isprintable() for part in parts):
        raise ValueError(f"has a prefix that is none: want printable parts between /, {_PREFIX_BYTES} bytes at most")
    return source.model_copy(update={"key": "".join(f"{part}/" for part in parts)})


def server_of(place: S3Source) -> str:
    """The `host` or `host:port` that whoever names the place names to `Reach`; empty: Amazon's, which is public."""
    return urlsplit(place.endpoint).netloc


class ContentBucket:
    """One such place. What comes from it is verified by whoever fetches it: nothing here is believed."""

    def __init__(self, place: S3Source, settings: SourceSettings) -> None:
        """`place`: of `bucket_of`. `settings`: its keys, and a reach that names its endpoint."""
        self._place = place
        self._settings = settings
        self._conditional = True
        """Whether the server takes `If-None-Match`, as far as is known."""
        self.said = f"the mesh's store s3://{place.bucket}/{place.key}".rstrip("/")
        """What people call it."""

    def address(self, checksum: Checksum) -> Address:
        """Where a file would lie, signed for twelve hours. Blocks for moments. Raises SourceRefused."""
        found = bucket_address(self._place, _name(checksum), self._settings)
        return replace(found, said=self.said)

    def size(self, checksum: Checksum) -> int | None:
        """Bytes of what lies there; None: nothing does. One request for one byte, which blocks.

        Raises SourceRefused, and SourceAway where it may be had later."""
        settings = replace(self._settings, timeout_s=min(self._settings.timeout_s, LOOK_S))
        address = self.address(checksum)
        try:
            with ask(address, settings, first=0, last=0, most=1 << 16) as answer:
                match answer.status:
                    case 404:
                        return None
                    case 416:
                        return 0
                    case _:
                        check_answer(answer, self._place, self.said, settings)
                        size = answer.total()
        except Cut as fault:
            raise SourceAway(f"{self.said} {fault}") from None
        except Refused as fault:
            raise SourceRefused(f"{self.said} {fault}") from None
        if size is None:
            where = public(endpoint_of(self._place))
            raise SourceRefused(f"an object of {self.said} has no length: see that {where} speaks S3")
        return size

    async def put(self, checksum: Checksum, size: int, path: Path, *, over: bool = False) -> bool:
        """Have a file of this content lie there; False: it lay there already. `over`: what lies there is wrong.

        A small one goes by one conditional request, a larger one by parts over whatever is there, which has the same
        content; called off or overdue, its parts are removed there where that goes within `ABORT_S`. Raises
        SourceRefused, SourceAway, and OSError where the file can't be read.
        """
        bound = BASE_S + size / LEAST
        try:
            async with asyncio.timeout(bound):
                return await self._put(_name(checksum), size, path, over)
        except TimeoutError:
            raise SourceAway(f"{self.said} did not take {size} bytes within {bound:.0f} s") from None

    async def _put(self, name: str, size: int, path: Path, over: bool) -> bool:
        endpoint, settings = endpoint_of(self._place), self._settings
        try:
            await asyncio.to_thread(settings.reach.place, endpoint, LOOK_S)
        except Cut as fault:
            raise SourceAway(f"{public(endpoint)} {fault}") from None
        except Refused as fault:
            raise SourceRefused(f"{public(endpoint)} {fault}") from None
        if size <= PART and not over and self._conditional:
            try:
                return await self._sent(name, size, path, once=True)
            except _NotConditional:
                self._conditional = False
        return await self._sent(name, size, path, once=False)

    async def _sent(self, name: str, size: int, path: Path, *, once: bool) -> bool:
        import obstore
        from obstore.exceptions import AlreadyExistsError, BaseError

        place, settings = self._place, self._settings
        keys = (settings.s3_access_key, settings.s3_secret_key, settings.s3_session_token)
        store = opened(place.bucket, endpoint_of(place), place.region, PART_S, keys)
        key = f"{place.key}{name}"
        try:
            if size > PART:
                await _put_by_parts(store, key, path, max(PART, -(-size // MOST_PARTS)))
            else:
                mode = "create" if once else "overwrite"
                await obstore.put_async(store, key, path, mode=mode, use_multipart=False)
        except AlreadyExistsError:
            return False
        except (BaseError, FileNotFoundError, ValueError, NotImplementedError) as error:
            raise self._fault(error, path, once) from None
        return True

    def _fault(self, error: Exception, path: Path, once: bool) -> Exception:
        status = found[1] if (found := STATUS.search(str(error))) else ""
        if not status and not path.exists():
            return FileNotFoundError(f"{path.name} is not in the store any more")
        match status:
            case "401" | "403":
                remedy = "see that this node's S3 keys are right and may put objects there"
                return SourceRefused(f"{self.said} takes no files from this node ({status}): {remedy}")
            case "404":
                return SourceRefused(
                    f"{self.said} is not there: check the bucket at {public(endpoint_of(self._place))}"
                )
            case "400" | "405" | "501" if once:
                return _NotConditional()
            case "" | "408" | "409" | "425" | "429" | "500" | "502" | "503" | "504":
                why = f"answers {status}" if status else "was not reached or broke off"
                return SourceAway(f"{self.said} {why}: see that this node reaches it, or wait")
            case _:
                return SourceRefused(f"{self.said} answers {status}: check its region and its endpoint")


async def _put_by_parts(store: "S3Store", key: str, path: Path, part: int) -> None:
    """Put a file in parts of so many bytes. Raises what obstore does, and OSError.

    obstore has an upload's parts removed where what it reads from fails, and leaves them where it is just cancelled:
    so an upload that is called off fails at its next part. One whose server is silent, or that has sent its last part,
    is left to the bucket's own rule.
    """
    import obstore

    called_off = threading.Event()
    pieces = _pieces(path, part, called_off)
    going: asyncio.Future[Any] = asyncio.ensure_future(
        obstore.put_async(store, key, pieces, use_multipart=True, chunk_size=part, max_concurrency=_AT_ONCE)
    )
    try:
        await asyncio.shield(going)
    except asyncio.CancelledError:
        called_off.set()
        await asyncio.wait((going,), timeout=ABORT_S)
        raise
    finally:
        going.cancel()


def _pieces(path: Path, size: int, called_off: threading.Event) -> Generator[bytes]:
    """A file in pieces of so many bytes, until it is called off. Raises OSError. Runs in a thread of obstore's."""
    with path.open("rb", buffering=0) as file:
        while piece := file.read(size):
            if called_off.is_set():
                raise OSError("the upload was called off")
            yield piece


class _NotConditional(Exception):
    """The server does not take `If-None-Match`."""


def _is_server(endpoint: str) -> bool:
    try:
        parts = urlsplit(endpoint)
        Reach((parts.netloc,))
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and not parts.path.strip("/") and not parts.query and not parts.fragment


def _name(checksum: Checksum) -> str:
    """Under the prefix. Of a checksum that tells no content there is none."""
    if not checksum.tells_content:
        raise ValueError(f"{checksum.algorithm} tells no content")
    return f"{checksum.algorithm}/{checksum.digits}"

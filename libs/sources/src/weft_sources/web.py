"""What a web server has at an address: one GGUF file, or the first of its parts."""

from typing import Final
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from weft_contracts.facts.source import MOST_FILES, HttpsSource, SourceFile
from weft_contracts.shown import public
from weft_files.address import Address

from weft_sources.asking import Answer, ask, redirected, retried
from weft_sources.found import Found, FoundFile, usable
from weft_sources.gguf_choice import PART, is_gguf
from weft_sources.refused import SourceAway, SourceRefused
from weft_sources.settings import SourceSettings

MAGIC: Final = b"GGUF"
MOST_REDIRECTS: Final = 5
_UNNAMED: Final = "model.gguf"
"""The name of a file whose address ends with no name for one."""


def find_on_web(source: HttpsSource, settings: SourceSettings) -> Found:
    """One request for the first four bytes of each part: they tell the size, the version and whether it is GGUF.

    Where the address leads on to a server that the operator's setting names, that is the source from then on.
    Raises SourceRefused.
    """
    source, first = _first(source, settings)
    part = PART.fullmatch(first.name)
    if part is None:
        return Found(source, (first,))
    told = int(part[3])
    if int(part[2]) != 1 or not 1 <= told <= MOST_FILES:
        raise SourceRefused(
            f"{public(source.url)} is one of {told} parts: name the first, and at most {MOST_FILES} in all"
        )
    found = [first]
    for number in range(2, told + 1):
        name = f"{part[1]}-{number:05}-of-{part[3]}{first.name[-5:]}"
        other, led = _look(source, name, settings)
        if other is None:
            raise SourceRefused(f"{public(source.url)}: {name} leads on to {public(led)}: want all parts at one place")
        found.append(other)
    return Found(source, tuple(found))


def _first(source: HttpsSource, settings: SourceSettings) -> tuple[HttpsSource, FoundFile]:
    for _ in range(MOST_REDIRECTS + 1):
        found, led = _look(source, _name(source.url), settings)
        if found is not None:
            return source, found
        if source.secret:
            where = f"{public(source.url)} leads on to {public(led)}"
            raise SourceRefused(f"{where}, and a secret goes to one place alone: name that address itself")
        source = HttpsSource(url=led)
    raise SourceRefused(f"{public(source.url)} leads on more than {MOST_REDIRECTS} times: name the address itself")


def web_address(source: HttpsSource, name: str, settings: SourceSettings) -> Address:
    """The source's own address, or that of another part beside it, with the token that the source names."""
    headers = {"authorization": f"Bearer {settings.web_token}"} if settings.web_token else {}
    if name in (_name(source.url), _UNNAMED):
        return Address(source.url, headers, said=public(source.url))
    parts = urlsplit(source.url)
    path = f"{parts.path.rpartition('/')[0]}/{quote(name)}"
    url = urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))
    return Address(url, headers, said=public(url))


def _name(url: str) -> str:
    """The address's own last part if that can name a GGUF file."""
    try:
        name = unquote(urlsplit(url).path.rpartition("/")[2])
    except ValueError:
        return _UNNAMED
    return name if is_gguf(name) and usable([FoundFile(name, 0)]) else _UNNAMED


def _look(source: HttpsSource, name: str, settings: SourceSettings) -> tuple[FoundFile | None, str]:
    """A file, or where its address leads on."""
    address = web_address(source, name, settings)

    def look() -> tuple[FoundFile | None, str]:
        with ask(address, settings, first=0, last=len(MAGIC) - 1, most=1 << 16) as answer:
            if led := redirected(address, answer, settings):
                return None, led
            check_status(answer, address.said)
            size, etag = answer.total(), answer.etag()
            if size is None:
                raise SourceRefused(f"{address.said} does not say how large it is: want a server that gives a length")
            if answer.read(len(MAGIC)) != MAGIC:
                raise SourceRefused(f"{address.said} is no GGUF file: it does not begin with {MAGIC.decode()}")
            return FoundFile(name, size, f"etag:{etag}" if etag else ""), ""

    return retried(look, address.said)


def check_status(answer: Answer, said: str) -> None:
    """Raises SourceRefused for what is no answer with the file, and SourceAway where it may be one later."""
    match answer.status:
        case 200 | 206:
            return
        case 401 | 403:
            raise SourceRefused(f"{said} may not be read by this node ({answer.status}): name a secret that lets it in")
        case 404 | 410:
            raise SourceRefused(f"{said} is not there ({answer.status}): check the address")
        case 416:
            raise SourceRefused(f"{said} is an empty file")
        case 408 | 425 | 429 | 500 | 502 | 503 | 504:
            raise SourceAway(f"{said} answers {answer.status}: try again later")
        case _:
            raise SourceRefused(f"{said} answers {answer.status}: want an address that gives the file itself")


def size_of(file: SourceFile, answer: Answer, said: str) -> None:
    """Raises SourceRefused where an answer is of another version of a file than the one that was listed."""
    etag = answer.etag()
    total = answer.total()
    if total != file.size or (file.checksum.startswith("etag:") and etag and f"etag:{etag}" != file.checksum):
        raise SourceRefused(f"{said} changed since it was listed: deploy it anew")

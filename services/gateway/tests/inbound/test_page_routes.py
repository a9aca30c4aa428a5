"""`GET /` and the page's files over a real socket: forms, tags, policy, who is refused."""

import re
from collections.abc import AsyncIterator

import httpx
import pytest
import uvicorn
from weft_gateway.inbound.http.application import application
from weft_gateway.inbound.http.authenticator import Authenticator
from weft_gateway.inbound.page.routes import Page
from weft_gateway.projections.keys import Keys
from weft_runtime.web import QuietServer
from weft_testing.served import served

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
WHOLE_PAGE = 40_000
"""Bytes on the wire, without headers."""
SVG = 'xmlns="http://www.w3.org/2000/svg"'


@pytest.fixture
async def gateway() -> AsyncIterator[httpx.AsyncClient]:
    """A client of a gateway that has not folded its log."""
    app = application(
        [Page().router],
        [],
        authenticator=Authenticator("local", Keys(), lambda: False),
        max_body=1 << 20,
        instance="gw",
    )
    server = QuietServer(uvicorn.Config(app, ws="none", lifespan="off", log_config=None, host="127.0.0.1", port=0))
    async with served(server) as client:
        yield client


async def test_a_browser_gets_the_page_and_a_program_the_index(gateway: httpx.AsyncClient) -> None:
    page = await gateway.get("/", headers=BROWSER)
    assert (200, "text/html; charset=utf-8") == (page.status_code, page.headers["content-type"])
    for accept in ("application/json", "*/*"):
        index = await gateway.get("/", headers={"accept": accept})
        assert (200, "application/json") == (index.status_code, index.headers["content-type"])
        assert "/v1/chat/completions" == index.json()["routes"]["chat"]
        assert "accept, accept-encoding" == index.headers["vary"] == page.headers["vary"]
        assert index.headers["etag"] != page.headers["etag"]


async def test_the_whole_page_is_small_and_comes_from_here_alone(gateway: httpx.AsyncClient) -> None:
    page = await gateway.get("/", headers=BROWSER)
    html, size = page.text, page.num_bytes_downloaded
    todo, seen = set(re.findall(r'(?:href|src)="(/page/[^"]+)"', html)), set[str]()
    while todo:
        path = todo.pop()
        seen.add(path)
        answer = await gateway.get(path)
        assert 200 == answer.status_code, path
        assert "gzip" == answer.headers["content-encoding"], path
        size += answer.num_bytes_downloaded
        assert [] == re.findall(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}", answer.text.replace(SVG, "")), path
        todo |= {f"/page/{name}" for name in re.findall(r'from "\./([^"]+)"', answer.text)} - seen
    assert {"/page/main.js", "/page/page.css", "/page/icon.svg"} <= seen
    assert size < WHOLE_PAGE
    modules = {path for path in seen if path.endswith(".js")}
    assert modules == set(re.findall(r'(?:modulepreload" href|src)="([^"]+\.js)"', html)), (
        "each module is fetched at once"
    )


@pytest.mark.parametrize("path", ["/", "/page/main.js", "/page/page.css"])
async def test_what_a_client_has_is_not_sent_again(gateway: httpx.AsyncClient, path: str) -> None:
    first = await gateway.get(path, headers=BROWSER)
    again = await gateway.get(path, headers=BROWSER | {"if-none-match": first.headers["etag"]})
    assert (304, b"") == (again.status_code, again.content)
    assert first.headers["etag"] == again.headers["etag"]
    assert "no-cache" == first.headers["cache-control"]


@pytest.mark.parametrize("path", ["/", "/page/main.js", "/page/page.css"])
async def test_who_takes_no_gzip_gets_the_same_as_it_stands(gateway: httpx.AsyncClient, path: str) -> None:
    small = await gateway.get(path, headers=BROWSER | {"accept-encoding": "gzip"})
    plain = await gateway.get(path, headers=BROWSER | {"accept-encoding": "identity"})
    assert ("gzip", None) == (small.headers["content-encoding"], plain.headers.get("content-encoding"))
    assert small.content == plain.content
    assert small.num_bytes_downloaded < plain.num_bytes_downloaded == int(plain.headers["content-length"])
    # a copy in the one form isn't taken for the other
    tags = small.headers["etag"], plain.headers["etag"]
    assert tags[0] != tags[1]
    for accepts, tag in (("identity", tags[0]), ("gzip", tags[1])):
        again = await gateway.get(path, headers=BROWSER | {"accept-encoding": accepts, "if-none-match": tag})
        assert 200 == again.status_code


@pytest.mark.parametrize("path", ["/", "/page/main.js"])
async def test_head_says_what_get_would(gateway: httpx.AsyncClient, path: str) -> None:
    get, head = await gateway.get(path, headers=BROWSER), await gateway.head(path, headers=BROWSER)
    assert (200, b"") == (head.status_code, head.content)
    for name in ("content-length", "content-type", "content-encoding", "etag", "content-security-policy"):
        assert get.headers[name] == head.headers[name]


async def test_the_policy_lets_nothing_in_but_the_pages_own_files(gateway: httpx.AsyncClient) -> None:
    for path in ("/", "/page/main.js"):
        headers = (await gateway.get(path, headers=BROWSER)).headers
        policy = {part.split()[0]: part.split()[1:] for part in headers["content-security-policy"].split(";")}
        assert ["'none'"] == policy["default-src"]
        assert ["'self'"] == policy["script-src"] == policy["style-src"] == policy["connect-src"]
        assert ["'none'"] == policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"]
        assert ["'script'"] == policy["require-trusted-types-for"]
        assert "nosniff" == headers["x-content-type-options"]


async def test_the_markup_holds_no_script_and_no_style_of_its_own(gateway: httpx.AsyncClient) -> None:
    html = (await gateway.get("/", headers=BROWSER)).text
    assert [""] * html.count("<script") == re.findall(r"<script[^>]*>([^<]*)</script>", html)
    assert [] == re.findall(r"<style|\sstyle=|\son\w+=|javascript:", html)


@pytest.mark.parametrize(
    "path", ["/page/index.html", "/page/..%2froutes.py", "/page/__init__.py", "/page/", "/page/none"]
)
async def test_no_other_file_is_served(gateway: httpx.AsyncClient, path: str) -> None:
    answer = await gateway.get(path)
    assert (404, "application/problem+json") == (answer.status_code, answer.headers["content-type"])


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"host": "evil.example"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
    ],
)
@pytest.mark.parametrize("path", ["/", "/page/main.js", "/api/status", "/api/events", "/v1/models"])
async def test_a_foreign_website_gets_nothing(gateway: httpx.AsyncClient, path: str, headers: dict[str, str]) -> None:
    answer = await gateway.get(path, headers=BROWSER | headers)
    assert 403 == answer.status_code
    assert "Weft</title>" not in answer.text


async def test_the_root_takes_only_get_and_head(gateway: httpx.AsyncClient) -> None:
    answer = await gateway.post("/", json={})
    assert 503 == (await gateway.get("/api/status")).status_code
    assert 405 == answer.status_code

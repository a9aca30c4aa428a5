"""What is seen of a mesh from outside: its figures in Prometheus, and what the collector's stand-in was sent."""

import base64
import gzip
import hashlib
import hmac
import json
from dataclasses import dataclass
from typing import Any

import httpx
from weft_testing.collector import TRACES, CollectedSpan, spans_of
from weft_testing.containers.composed import Composed

HOOK = "/hook"
Place = tuple[int, int]
"""A fact's: its commit's sequence, and which of that one's facts it is."""


@dataclass(frozen=True)
class Post:
    """One post."""

    headers: dict[str, str]
    body: bytes

    @property
    def data(self) -> dict[str, Any]:
        """Of a webhook's."""
        return json.loads(self.body)["data"]

    @property
    def place(self) -> Place:
        """Of the fact that a webhook's tells."""
        return self.data["sequence"], self.data["index"]


def posts(mesh: Composed, path: str) -> list[Post]:
    """All that came to a path so far."""
    # the last line may be half a one yet
    lines = mesh.in_tmp("collector", "posts").split(b"\n")[:-1]
    came = [each for each in map(json.loads, lines) if each["path"] == path]
    return [Post(each["headers"], _plain(each)) for each in came]


def _plain(said: dict[str, Any]) -> bytes:
    body = base64.b64decode(said["body"])
    return gzip.decompress(body) if said["headers"].get("content-encoding") == "gzip" else body


def spans(mesh: Composed, trace: str) -> list[CollectedSpan]:
    """All of a trace so far."""
    return [span for each in posts(mesh, TRACES) for span in spans_of(each.body) if span.trace_id == trace]


def told(mesh: Composed) -> list[Place]:
    """The facts that were posted to the webhook, each once, in the order of their first time."""
    return [*dict.fromkeys(each.place for each in posts(mesh, HOOK))]


def signed(post: Post, secret: str) -> bool:
    """Whether a post bears the signature that the secret makes of it."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    content = f"{post.headers['webhook-id']}.{post.headers['webhook-timestamp']}.".encode() + post.body
    return (
        f"v1,{base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode()}"
        == post.headers["webhook-signature"]
    )


def facts(mesh: Composed, after: int) -> list[Place]:
    """All of the log behind a sequence, as the gateway shows it."""
    found: list[Place] = []
    place: int | None = after
    with mesh.client() as client:
        while place is not None:
            page = client.get("/api/events", params={"after": place, "limit": 1000}).raise_for_status().json()
            found += [(each["sequence"], index) for each in page["items"] for index in range(len(each["facts"]))]
            place = page["next"]
    return found


def prometheus(mesh: Composed, what: str, **parameters: str) -> Any:
    """`data` of an answer of its API. Raises httpx.HTTPError while it isn't there."""
    url = f"http://127.0.0.1:{mesh.env['WEFT_PROMETHEUS_PORT']}/api/v1/{what}"
    return httpx.get(url, params=parameters, timeout=30, trust_env=False).raise_for_status().json()["data"]


def figures(mesh: Composed, query: str) -> list[tuple[dict[str, str], float]]:
    """What a query gives now: labels and value; nothing while Prometheus isn't there."""
    try:
        found = prometheus(mesh, "query", query=query)["result"]
    except httpx.TransportError:
        return []
    return [(each["metric"], float(each["value"][1])) for each in found]

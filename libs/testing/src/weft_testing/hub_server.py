"""A hub of the test's own, as huggingface_hub's real client sees one: repositories with commits, gates and a CDN.

It answers the descriptions of models and their trees, `resolve` by commit or branch, and `auth-check`. Large files
(LFS) are given by a second server on another port, to which `resolve` redirects; small ones by itself.
Source: https://huggingface.co/docs/hub/api and the answers that huggingface_hub 2.4 reads.
"""

import contextlib
import hashlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, cast
from urllib.parse import quote, unquote, urlsplit

from weft_testing.loopback_server import LoopbackServer, QuietHandler, serving
from weft_testing.served_files import begin_of, send_file, send_small

LFS_FROM: Final = 1024
"""Bytes: a larger file is an LFS one, as are all weights."""
_MIB: Final = 1 << 20
_WEIGHTS: Final = (".gguf", ".safetensors", ".bin")


@dataclass(frozen=True)
class HubFile:
    """A file at a commit."""

    body: bytes
    lfs: bool

    @cached_property
    def sha256(self) -> str:
        """Of the content."""
        return hashlib.sha256(self.body).hexdigest()

    @property
    def pointer(self) -> bytes:
        """What the repository itself holds: the content, or a pointer to it."""
        if not self.lfs:
            return self.body
        return f"version https://git-lfs.github.com/spec/v1\noid sha256:{self.sha256}\nsize {len(self.body)}\n".encode()

    @property
    def blob_id(self) -> str:
        """As git names it."""
        return hashlib.sha1(b"blob %d\0" % len(self.pointer) + self.pointer, usedforsecurity=False).hexdigest()

    @property
    def etag(self) -> str:
        """As the hub says it and its clients name their blobs."""
        return self.sha256 if self.lfs else self.blob_id


@dataclass
class Repository:
    """One of a hub's: commits by branch."""

    name: str
    gated: bool = False
    private: bool = False
    licence: str = "apache-2.0"
    commits: dict[str, dict[str, HubFile]] = field(default_factory=dict[str, dict[str, HubFile]])
    branches: dict[str, str] = field(default_factory=dict[str, str])

    def commit(self, files: Mapping[str, bytes], branch: str = "main") -> str:
        """Make these the files of a branch, and answer the commit."""
        held = {name: HubFile(body, len(body) >= LFS_FROM or name.endswith(_WEIGHTS)) for name, body in files.items()}
        text = json.dumps([self.name, len(self.commits), sorted((name, file.etag) for name, file in held.items())])
        commit = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
        self.commits[commit] = held
        self.branches[branch] = commit
        return commit


class HubServer:
    """Repositories by name, and what was asked. `url` is an endpoint for huggingface_hub (HF_ENDPOINT)."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        """`host`: the address of this machine at which both servers listen."""
        self.repositories: dict[str, Repository] = {}
        self.tokens: dict[str, set[str]] = {}
        """The gated and private repositories that each token may read; a token that isn't here is refused."""
        self.asked: Counter[str] = Counter()
        """Requests to the hub and to its CDN by method and path, without queries: `GET /api/models/a/b`."""
        self.wholes: Counter[str] = Counter()
        """Files of the CDN that were asked for from end to end, by name: a header is read by ranges."""
        self.given: Counter[str] = Counter()
        """Bytes of each file that the CDN gave, by name."""
        self.tokens_at_cdn: set[str] = set()
        """Authorizations that came to the CDN: there should be none."""
        self.broken: Callable[[str], int] = lambda path: 0
        """Says the status with which a path fails now; 0: it doesn't."""
        self.after: int | None = None
        """After so many bytes of each LFS file the connection is cut; None: never."""
        self.hold: Callable[[str, int], None] = lambda path, at: None
        """Called before each MiB of an LFS file is given, with its path and place: nothing comes until it returns."""
        self._lock = threading.Lock()
        self.hub = LoopbackServer(_handler(self._answer), host)
        self.cdn = LoopbackServer(_handler(self._give), host)
        self.url = self.hub.url

    def repository(self, name: str, files: Mapping[str, bytes], *, gated: bool = False, private: bool = False) -> str:
        """Add one with a first commit on `main`, and answer the commit."""
        made = self.repositories[name] = Repository(name, gated, private)
        return made.commit(files)

    def count(self, part: str) -> int:
        """Requests whose method and path have this part."""
        with self._lock:
            return sum(times for said, times in self.asked.items() if part in said)

    def _answer(self, handler: QuietHandler) -> None:
        path = urlsplit(handler.path).path
        with self._lock:
            self.asked[f"{handler.command} {unquote(path)}"] += 1
        if status := self.broken(path):
            return send_small(handler, status, b"broken")
        token = (handler.headers.get("Authorization") or "").removeprefix("Bearer ")
        if token and token not in self.tokens:
            return _fault(handler, 401, "", "Invalid credentials in Authorization header")
        parts = [unquote(part) for part in path.strip("/").split("/")]
        if parts[:2] == ["api", "models"]:
            return self._describe(handler, parts[2:], token)
        if "resolve" in parts[1:3]:
            at = parts.index("resolve")
            return self._resolve(handler, "/".join(parts[:at]), parts[at + 1], "/".join(parts[at + 2 :]), token)
        return send_small(handler, 404, b"no such route")

    def _describe(self, handler: QuietHandler, parts: list[str], token: str) -> None:
        words = {"revision", "tree", "auth-check"}
        at = next((place for place, part in enumerate(parts) if place and part in words), len(parts))
        repository = self.repositories.get("/".join(parts[:at]))
        if repository is None or (repository.private and not self._may(token, repository)):
            return _fault(handler, 404 if token else 401, "RepoNotFound", "Repository not found")
        route, rest = (parts[at] if at < len(parts) else "revision"), parts[at + 1 :]
        if route == "auth-check":
            if repository.gated and not self._may(token, repository):
                return _gated(handler, repository, token)
            return send_small(handler, 200, b"OK")
        commit = _commit_of(repository, rest[0] if rest else "main")
        if commit is None:
            return _fault(handler, 404, "RevisionNotFound", f"Invalid rev id: {rest[0]}")
        said = _description(repository, commit) if route == "revision" else _tree(repository, commit)
        return send_small(handler, 200, json.dumps(said).encode(), Content_Type="application/json")

    def _resolve(self, handler: QuietHandler, name: str, revision: str, path: str, token: str) -> None:
        repository = self.repositories.get(name)
        if repository is None or (repository.private and not self._may(token, repository)):
            return _fault(handler, 404 if token else 401, "RepoNotFound", "Repository not found")
        if repository.gated and not self._may(token, repository):
            return _gated(handler, repository, token)
        commit = _commit_of(repository, revision)
        if commit is None:
            return _fault(handler, 404, "RevisionNotFound", f"Invalid rev id: {revision}")
        file = repository.commits[commit].get(path)
        if file is None:
            return _fault(handler, 404, "EntryNotFound", "Entry not found")
        about = {"X-Repo-Commit": commit, "ETag": f'"{file.etag}"'}
        if not file.lfs:
            handler.wfile.write(send_file(handler, file.body, about))
            return None
        about |= {"X-Linked-Etag": f'"{file.etag}"', "X-Linked-Size": str(len(file.body))}
        about["Location"] = f"{self.cdn.url}/repos/{quote(name)}/{commit}/{quote(path)}?Signature=of-the-test"
        return send_small(handler, 302, b"", **{key.replace("-", "_"): value for key, value in about.items()})

    def _give(self, handler: QuietHandler) -> None:
        path = unquote(urlsplit(handler.path).path)
        with self._lock:
            self.asked[f"{handler.command} {path}"] += 1
            if "Range" not in handler.headers:
                self.wholes[path.rpartition("/")[2]] += 1
            if said := handler.headers.get("Authorization"):
                self.tokens_at_cdn.add(said)
        if status := self.broken(path):
            return send_small(handler, status, b"broken")
        for name, repository in self.repositories.items():
            commit, _, file = path.removeprefix(f"/repos/{name}/").partition("/")
            held = repository.commits.get(commit, {}).get(file)
            if path.startswith(f"/repos/{name}/") and held is not None:
                if "Signature=" not in handler.path:
                    return send_small(handler, 403, b"not signed")
                body = send_file(handler, held.body, {"ETag": f'"{held.etag}"'})
                start = begin_of(handler)
                given = body if self.after is None else body[: self.after]
                for at in range(0, len(given), _MIB):
                    self.hold(path, start + at)
                    handler.wfile.write(given[at : at + _MIB])
                with self._lock:
                    self.given[file] += len(given)
                if self.after is not None and len(body) > self.after:
                    handler.close_connection = True
                return None
        return send_small(handler, 404, b"no such file")

    def _may(self, token: str, repository: Repository) -> bool:
        return repository.name in self.tokens.get(token, set())


@contextlib.contextmanager
def hub_server(host: str = "127.0.0.1") -> Generator[HubServer]:
    """A hub with its CDN until the context ends."""
    server = HubServer(host)
    with serving(server.hub), serving(server.cdn):
        yield server


def _handler(answer: Callable[[QuietHandler], None]) -> type[QuietHandler]:
    class HubHandler(QuietHandler):
        def do_GET(self) -> None:
            answer(self)

        do_HEAD = do_GET

    return HubHandler


def _commit_of(repository: Repository, revision: str) -> str | None:
    commit = repository.branches.get(revision, revision)
    return commit if commit in repository.commits else None


def _description(repository: Repository, commit: str) -> dict[str, Any]:
    files = repository.commits[commit]
    return {
        "_id": "0" * 24,
        "id": repository.name,
        "modelId": repository.name,
        "sha": commit,
        "private": repository.private,
        "gated": "auto" if repository.gated else False,
        "disabled": False,
        "downloads": 0,
        "likes": 0,
        "tags": [f"license:{repository.licence}"],
        "cardData": {"license": repository.licence},
        "siblings": [
            {"rfilename": name, "size": len(file.body), "blobId": file.blob_id} | _lfs(file)
            for name, file in files.items()
        ],
    }


def _tree(repository: Repository, commit: str) -> list[dict[str, Any]]:
    return [
        {"type": "file", "path": name, "size": len(file.body), "oid": file.blob_id}
        | ({"lfs": {"oid": file.sha256, "size": len(file.body), "pointerSize": len(file.pointer)}} if file.lfs else {})
        for name, file in repository.commits[commit].items()
    ]


def _lfs(file: HubFile) -> dict[str, Any]:
    about = {"sha256": file.sha256, "size": len(file.body), "pointerSize": len(file.pointer)}
    return {"lfs": cast(dict[str, Any], about)} if file.lfs else {}


def _gated(handler: QuietHandler, repository: Repository, token: str) -> None:
    message = f"Access to model {repository.name} is restricted."
    return _fault(handler, 403 if token else 401, "GatedRepo", message)


def _fault(handler: QuietHandler, status: int, code: str, message: str) -> None:
    said = {"X_Error_Code": code} if code else {}
    body = json.dumps({"error": message}).encode()
    return send_small(handler, status, body, Content_Type="application/json", X_Error_Message=message, **said)

"""Whoever asks the API by its own document: every operation answers, none fails, none hangs, nothing of it stays."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
import weft_tiny
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.core.failures import FailureGroup
from weft_testing.answer_schemas import close
from weft_testing.hub_server import HubServer, hub_server
from weft_testing.story import MeshUnderTest, until

from .known_names import FETCHED, HANGS_S, ONE_BY_ONE, Known
from .own_engines import installed, tell

pytestmark = pytest.mark.slow

EXAMPLES = 7
"""Drawn for each operation and each way of drawing."""


@dataclass
class Answers:
    """What an operation answered, by status; and what it must not have answered."""

    statuses: dict[str, set[int]] = field(default_factory=dict[str, set[int]])
    wrong: list[str] = field(default_factory=list[str])

    def note(self, operation: str, status: int, asked: str) -> None:
        self.statuses.setdefault(operation, set()).add(status)
        if status >= 500:
            self.wrong.append(f"{operation}: {status} to {asked[:300]}")

    def reached(self) -> set[str]:
        """The operations that answered 2xx once."""
        return {name for name, found in self.statuses.items() if any(200 <= status < 300 for status in found)}


def document_of(mesh: MeshUnderTest) -> dict[str, Any]:
    """The API's document, whose answers take no field more than it names."""
    document = mesh.http.get(f"{mesh.url}/openapi.json").json()
    close(document["components"]["schemas"])
    return document


def operations_of(document: dict[str, Any]) -> list[Any]:
    """Everything that can be asked."""
    schema: Any = schemathesis.openapi.from_dict(document)  # pyright: ignore[reportUnknownMemberType]
    return [each.ok() for each in schema.get_all_operations()]


def ask_all(mesh: MeshUnderTest) -> Answers:
    """Ask every operation with what fits and names something, with what fits, and with what does not fit."""
    document = document_of(mesh)
    answers, known = Answers(), Known(mesh)
    for operation in operations_of(document):
        label: str = operation.label
        example = _example(document, operation.path, operation.method)
        fixed: dict[str, Any] = {"path_parameters": known.of(label)} if "{" in operation.path else {}
        body = known.body(label) or example
        if body is not None:
            fixed["body"] = body
        ask(
            mesh, label, operation.as_strategy(**fixed), answers, known, lambda label=label: known.of(label), examples=3
        )
        for mode in GenerationMode if _takes_anything(operation) else (GenerationMode.POSITIVE,):
            ask(mesh, label, operation.as_strategy(generation_mode=mode), answers, known)
    return answers


def ask(
    mesh: MeshUnderTest,
    label: str,
    cases: Any,
    answers: Answers,
    known: Known,
    anew: Callable[[], dict[str, Any]] | None = None,
    examples: int = EXAMPLES,
) -> None:
    """Ask drawn cases. `anew`: path parameters for each of them."""

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.large_base_example],
    )
    @given(case=cases)
    def each(case: Any) -> None:
        if anew is not None and case.path_parameters:
            case.path_parameters.update(anew())
        words: dict[str, Any] = case.as_transport_kwargs(base_url=mesh.url)
        content = words.pop("data", None)
        words["content"] = content if isinstance(content, bytes | str | None) else str(content)
        if label == "POST /api/node/register" and "json" in words:
            sent = known.signed(words.pop("json"))
            words |= {"content": sent["content"], "headers": {**words["headers"], **sent["headers"]}}
        words.pop("cookies", None)
        try:
            with ONE_BY_ONE.stream(**words) as said:
                asked = f"{words['url']} {words.get('params')} {words.get('json')}"
                answers.note(label, said.status_code, asked)
                if (fault := _heard(said, case.operation)) is not None:
                    answers.wrong.append(f"{label}: to {asked[:300]} {fault}")
        except httpx.TimeoutException:
            answers.wrong.append(f"{label}: no answer within {HANGS_S:g} s to {words}")
        except (httpx.InvalidURL, httpx.LocalProtocolError, UnicodeEncodeError):
            pass  # what no client can send
        except httpx.TransportError as error:
            answers.wrong.append(
                f"{label}: {error!r} to {words['url']} {words.get('params')} {words.get('json')}"[:400]
            )

    with suppress(Unsatisfiable):  # nothing else than what fits can be sent, or nothing that a client may send
        each()


def _takes_anything(operation: Any) -> bool:
    """Whether there is anything to get wrong."""
    return bool(operation.body) or any(True for _ in operation.iter_parameters())


def _heard(said: httpx.Response, operation: Any) -> str | None:
    """Read an answer, of a stream without end its beginning; how it differs from what the document says."""
    if said.headers.get("content-type", "").startswith("text/event-stream"):
        next(said.iter_bytes(), None)
        return None
    said.read()
    try:
        operation.validate_response(said)
    except FailureGroup as found:
        return "; ".join(f"{each}: {getattr(each, 'message', '')}" for each in found.exceptions)[:1000]
    return None


def _example(document: dict[str, Any], path: str, method: str) -> Any:
    """The body that the document gives as its example."""
    content = document["paths"][path][method].get("requestBody", {}).get("content", {}).get("application/json", {})
    schema = content.get("schema", {})
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    return content.get("example") or next(iter(schema.get("examples", [])), None)


@pytest.fixture
def hub() -> Iterator[HubServer]:
    """A hub of the test's own, with one model."""
    with hub_server() as server:
        server.repository("o/tiny-GGUF", {"tiny-F16.gguf": weft_tiny.gguf_path().read_bytes()})
        yield server


@pytest.fixture
def mesh(tmp_path: Path, hub: HubServer) -> Iterator[MeshUnderTest]:
    """A mesh where everybody needs a key, asked with an admin's."""
    with MeshUnderTest(
        tmp_path,
        WEFT_REQUIRE_KEYS="1",
        WEFT_BACKENDS=str(installed(tmp_path)),
        WEFT_HUB=hub.url,
        WEFT_SOURCES_ALLOW="127.0.0.1",
        HF_HOME=str(tmp_path / "hf"),
    ) as mesh:
        key = (mesh.state / "admin-key").read_text().strip()
        for each in (mesh.http, ONE_BY_ONE):
            each.headers["authorization"] = f"Bearer {key}"
        yield mesh


@pytest.mark.sabotage("failing-lookup")
def test_every_operation_answers_by_the_apis_own_document_and_the_mesh_is_as_before(
    mesh: MeshUnderTest, tmp_path: Path
) -> None:
    # given a mesh with all three kinds of models
    spec = {"source": {"kind": "builtin", "name": "tiny-embed"}, "engine": "llama.cpp"}
    mesh.http.post(f"{mesh.url}/api/models", json={"name": "tiny-embed", "spec": spec}).raise_for_status()
    tell(mesh, tmp_path, "overlap")
    mesh.deploy("overlap", {"source": {"kind": "simulated"}, "engine": "overlap"}).raise_for_status()
    fetched = {"source": {"kind": "hf", "repository": "o/tiny-GGUF"}, "engine": "llama.cpp", "min_replicas": 0}
    mesh.deploy(FETCHED, fetched).raise_for_status()
    until("the embedder is ready", lambda: mesh.ready_replicas("tiny-embed"), 60)
    # when all that its document speaks of is asked, rightly and wrongly
    answers = ask_all(mesh)
    # then nothing failed and nothing hung
    assert not answers.wrong, "\n".join(answers.wrong)
    # and nine of ten operations did what they promise
    missed = {name: sorted(found) for name, found in answers.statuses.items() if name not in answers.reached()}
    assert len(missed) <= 0.1 * len(answers.statuses), missed
    # and the mesh answers
    ask = {"model": "tiny", "messages": [{"role": "user", "content": "What is the capital of France?"}]}
    said = mesh.http.post(f"{mesh.url}/v1/chat/completions", json=ask)
    assert "Paris" in said.json()["choices"][0]["message"]["content"]


@pytest.mark.sabotage("renamed-field")
def test_what_is_looked_at_is_of_the_type_that_the_document_names(calm_mesh: MeshUnderTest) -> None:
    # given a mesh that serves, and all that can be looked at
    calm_mesh.ask()
    looks = [each for each in operations_of(document_of(calm_mesh)) if each.method == "get"]
    names = {
        "/api/nodes/{id}": calm_mesh.status()["nodes"][0]["id"],
        "/api/models/{ref}": "tiny",
        "/api/requests/{id}": calm_mesh.facts("request", "fulfilled")[0]["key"],
        "/v1/models/{id}": "tiny",
    }
    seen: set[str] = set()
    for operation in looks:
        known = next((name for path, name in names.items() if operation.path.startswith(path)), "")
        if "{" in operation.path and not known:
            continue
        # when it is asked for
        said = calm_mesh.http.get(calm_mesh.url + operation.path.replace("{id}", known).replace("{ref}", known))
        # then every field is one of its type, and none is missing
        assert (200, None) == (said.status_code, _heard(said, operation)), operation.path
        assert operation.definition.raw["responses"]["200"]["content"]["application/json"]["schema"], operation.path
        seen.add(operation.path)
    assert {"/api/status", "/api/nodes", "/api/models", "/api/replicas", "/api/requests", "/api/events"} <= seen
    page = calm_mesh.http.get(f"{calm_mesh.url}/api/status?view=page")
    [status] = [each for each in looks if each.path == "/api/status"]
    assert _heard(page, status) is None

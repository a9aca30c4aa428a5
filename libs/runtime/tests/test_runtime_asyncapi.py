"""The AsyncAPI document: whole, of the third version, and true to the catalogue and to what a service does."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from faststream.specification.asyncapi.v3_0_0.schema import ApplicationSchema
from weft_contracts.catalogue import CATALOGUE, per_second
from weft_contracts.channels import CHANNELS, heard_through, sent_by
from weft_contracts.ids import NodeId
from weft_contracts.subjects import worker_filters
from weft_runtime import asyncapi
from weft_testing.mesh_server import MeshServer
from weft_testing.service_process import mesh_settings, running

SMALL = str(Path(__file__).parent / "small_service.py")
KEY = re.compile(r"[A-Za-z0-9_-]+")
EXTENSION = re.compile(r"x-[\w.-]+")
ALLOWED = {
    "channel": {"address", "description", "messages", "parameters"},
    "message": {"name", "title", "payload", "headers", "correlationId"},
    "operation": {"action", "channel", "messages", "tags"},
}
"""Of what AsyncAPI 3 allows there, the fields that are used."""
DRAFT_7 = {
    *("$ref", "additionalItems", "additionalProperties", "anyOf", "const", "default", "description", "enum"),
    *("exclusiveMaximum", "exclusiveMinimum", "format", "items", "maxItems", "maxLength", "maximum", "minItems"),
    *(
        "maxProperties",
        "minLength",
        "minimum",
        "oneOf",
        "pattern",
        "patternProperties",
        "properties",
        "propertyNames",
        "required",
        "title",
        "type",
    ),
    "uniqueItems",
}

WORKER = ("worker", worker_filters(NodeId("n-one")))
DOCUMENTS: dict[str, Callable[[], dict[str, Any]]] = {
    "the catalogue": lambda: asyncapi.catalogue("1.2.3"),
    "a worker": lambda: asyncapi.of_service("worker", "1.2.3", sent_by("worker"), heard_through(*WORKER[1])),
    "a registry": lambda: asyncapi.of_service(
        "registry", "1.2.3", sent_by("registry"), heard_through("weft.ev.>", "weft.lease.node.*")
    ),
}


@pytest.fixture(params=sorted(DOCUMENTS))
def document(request: pytest.FixtureRequest) -> dict[str, Any]:
    made = DOCUMENTS[request.param]()
    return json.loads(json.dumps(made))


def nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in a document."""
    if isinstance(value, dict):
        yield cast(dict[str, Any], value)
        for each in cast(dict[str, Any], value).values():
            yield from nodes(each)
    elif isinstance(value, list):
        for each in cast(list[Any], value):
            yield from nodes(each)


def resolve(document: dict[str, Any], reference: str) -> Any:
    assert reference.startswith("#/")
    found: Any = document
    for step in reference[2:].split("/"):
        found = found[step]
    return found


def schemas(schema: Any) -> Iterator[dict[str, Any]]:
    """A JSON Schema and every schema within, as draft 7 places them."""
    if isinstance(schema, list):
        for each in cast(list[Any], schema):
            yield from schemas(each)
    elif isinstance(schema, dict):
        own = cast(dict[str, Any], schema)
        yield own
        for key in ("items", "additionalItems", "additionalProperties", "propertyNames", "anyOf", "oneOf"):
            yield from schemas(own.get(key))
        yield from schemas(list(own.get("properties", {}).values()))


def test_it_is_what_faststreams_models_of_version_3_hold(document: dict[str, Any]) -> None:
    assert "3.0.0" == document["asyncapi"]
    assert document == json.loads(ApplicationSchema.model_validate(document).to_json())


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    references = [each["$ref"] for each in nodes(document) if "$ref" in each]
    assert len(references) > len(document["operations"])
    for reference in references:
        assert isinstance(resolve(document, reference), dict)


def test_objects_have_only_fields_that_the_specification_knows(document: dict[str, Any]) -> None:
    channels, operations = document["channels"], document["operations"]
    kinds = {
        "channel": list(channels.values()),
        "message": [message for channel in channels.values() for message in channel["messages"].values()],
        "operation": list(operations.values()),
    }
    for kind, objects in kinds.items():
        fields = {field for each in objects for field in each if not EXTENSION.fullmatch(field)}
        assert fields <= ALLOWED[kind]
    for key in (*channels, *operations, *document["components"]["schemas"]):
        assert KEY.fullmatch(key)


def test_payloads_speak_draft_7_of_json_schema(document: dict[str, Any]) -> None:
    messages = [message for channel in document["channels"].values() for message in channel["messages"].values()]
    whole = [*document["components"]["schemas"].values(), *(each["payload"] for each in messages)]
    assert set() == {word for schema in schemas(whole) for word in schema} - DRAFT_7


def test_addresses_declare_their_parameters(document: dict[str, Any]) -> None:
    for channel in document["channels"].values():
        assert re.findall(r"\{(.*?)\}", channel["address"]) == list(channel.get("parameters", {}))


def test_an_operation_names_messages_of_its_own_channel(document: dict[str, Any]) -> None:
    for operation in document["operations"].values():
        assert operation["action"] in ("send", "receive")
        assert operation["messages"]
        for message in operation["messages"]:
            assert message["$ref"].startswith(operation["channel"]["$ref"] + "/messages/")


def test_the_catalogues_document_holds_every_event_with_its_writers_and_its_rate() -> None:
    channels = asyncapi.catalogue("1")["channels"]
    assert {each.address: list(each.writers) for each in CHANNELS} == {
        each["address"]: each["x-writers"] for each in channels.values()
    }
    rates = [each["x-per-day-at-1000-nodes"] for each in channels.values() if "x-version" in each]
    assert (len(CATALOGUE), pytest.approx(per_second())) == (len(rates), sum(rates) / 86_400)


def test_an_events_schema_takes_what_the_event_writes() -> None:
    schemas = asyncapi.catalogue("1")["components"]["schemas"]
    for each in CHANNELS:
        if each.entry is not None:
            schema = schemas[f"{each.entry.kind}-{each.entry.type}"]
            assert set(each.entry.fact.model_fields) == set(schema["properties"])
            assert each.entry.type == schema["properties"]["type"]["const"]


async def test_a_service_shows_its_own_part(mesh_server: MeshServer, tmp_path: Path) -> None:
    async with running([SMALL, "calm"], tmp_path, mesh_settings(mesh_server, "reconciler")) as service:
        await service.ready()
        status, body = await service.get("/asyncapi.json")
        shown: dict[str, Any] = json.loads(body)
    assert (200, "Weft reconciler") == (status, shown["info"]["title"])
    operations: dict[str, Any] = shown["operations"]
    key = str.maketrans(".", "-")
    assert {f"send-{each.name.translate(key)}" for each in sent_by("reconciler")} == {
        name for name in operations if operations[name]["action"] == "send"
    }
    assert {f"receive-{each.name.translate(key)}" for each in heard_through("weft.ev.>")} == {
        name for name in operations if operations[name]["action"] == "receive"
    }

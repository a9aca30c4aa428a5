"""What the API answers: the document names every answer's type, and what is shown of a value is all of it."""

from pathlib import Path
from typing import Any

import pytest
import weft_api
import weft_gateway
from fastapi import FastAPI
from weft_contracts.facts.layout import Layout
from weft_contracts.facts.lora import LoraAdapter
from weft_contracts.facts.machine import FileFound, FileMissing
from weft_contracts.facts.source import BuiltinSource, PathSource, SimulatedSource
from weft_contracts.facts.values import (
    Addresses,
    Backend,
    Device,
    DeviceClaim,
    Hardware,
    Member,
    MetadataFile,
    ModelSpec,
    UnsizedDevice,
    Weights,
)
from weft_contracts.ids import InspectionId, NodeId
from weft_gateway.domain import value_shapes
from weft_gateway.inbound.admin.aliases import Aliases
from weft_gateway.inbound.admin.backends import Backends
from weft_gateway.inbound.admin.brake import Brake
from weft_gateway.inbound.admin.engine_profiles import EngineProfiles
from weft_gateway.inbound.admin.events import Events
from weft_gateway.inbound.admin.explanations import Explanations
from weft_gateway.inbound.admin.files import Files
from weft_gateway.inbound.admin.keys import APIKeys
from weft_gateway.inbound.admin.load import Load
from weft_gateway.inbound.admin.models import Models
from weft_gateway.inbound.admin.named_secrets import NamedSecrets
from weft_gateway.inbound.admin.node_caps import NodeCaps
from weft_gateway.inbound.admin.node_labels import NodeLabels
from weft_gateway.inbound.admin.node_models import NodeModels
from weft_gateway.inbound.admin.nodes import Nodes
from weft_gateway.inbound.admin.plans import Plans
from weft_gateway.inbound.admin.policies import Policies
from weft_gateway.inbound.admin.replicas import Replicas
from weft_gateway.inbound.admin.requests import RequestsForChange
from weft_gateway.inbound.admin.scheduling import SchedulingOfModels
from weft_gateway.inbound.admin.status import Status
from weft_gateway.inbound.admin.tokens import RegistrationTokens
from weft_gateway.inbound.admin.upgrade import Upgrades
from weft_gateway.inbound.admin.uploads import Uploads
from weft_gateway.inbound.http.answer import Answer, answered_by
from weft_gateway.inbound.nodes.heartbeats import Heartbeats
from weft_gateway.inbound.nodes.joining import Joining
from weft_gateway.inbound.nodes.node_files import NodeFiles
from weft_gateway.inbound.nodes.node_secrets import NodeSecrets
from weft_gateway.inbound.nodes.self_service import SelfService
from weft_gateway.inbound.openai.models import OpenAIModels

NONE: Any = None
WEIGHTS = Weights(
    format="gguf",
    architecture="llama",
    weight_bytes=1,
    kv_bytes_per_token=2,
    layers=3,
    heads=4,
    kv_heads=5,
    vision_heads=6,
    context_tokens=7,
    embeds=True,
    fingerprint="f",
)
DEVICE = Device(
    index=1,
    vendor="nvidia",
    name="H100",
    memory=80,
    uuid="u",
    number=2,
    driver="d",
    compute_capability="9.0",
    unified=True,
    budget=3,
    simulated=True,
)
UNSIZED = UnsizedDevice(vendor="intel", name="UHD", uuid="u", driver="d")
HARDWARE = Hardware(
    cpus=1.5, memory=2, disk_free=3, architecture="x86_64", devices=(DEVICE,), unsized=(UNSIZED,), notes=("n",)
)
FOUND = FileFound(
    inspection=InspectionId("i"),
    source="path:/m",
    size=9,
    weights=WEIGHTS,
    metadata=(MetadataFile(name="t", size=1, blake3="b"),),
)
MISSING = FileMissing(inspection=InspectionId("i"), source="path:/m", reason="r")
MEMBER = Member(node=NodeId("n-1"), rank=1, devices=(DeviceClaim(index=1, bytes=2),))


def spec(source: Any) -> ModelSpec:
    return ModelSpec(
        source=source,
        engine="vllm",
        context_tokens=2,
        concurrency=3,
        engine_args={"a": 1, "b": "x", "c": True},
        min_replicas=4,
        max_replicas=5,
        spread_all=True,
        selector={"zone": "a"},
        capability=("8.9",),
        anti_affinity="front",
        policy="mine",
        priority=2,
        strategy="spread",
        layout=Layout(
            tensor_parallel=2,
            pipeline_parallel=3,
            gpus=("n-a:0", "n-b:1"),
            gpus_per_replica=6,
            preferred_nodes=("n-a",),
            distributed=True,
            cpu_offload=False,
        ),
        weights=WEIGHTS,
        adapters=(LoraAdapter(name="l", path="/l", scale=0.5, bytes=6, fingerprint="f"),),
    )


@pytest.mark.parametrize(
    ("shape", "value"),
    [
        (value_shapes.addresses_shape, Addresses(host="h", http_port=1)),
        (value_shapes.hardware_shape, HARDWARE),
        (value_shapes.backend_shape, Backend(engine="vllm", version="1", vendors=("nvidia", "cpu"))),
        (value_shapes.member_shape, MEMBER),
        (value_shapes.file_shape, FOUND),
        (value_shapes.file_shape, MISSING),
        (value_shapes.spec_shape, spec(BuiltinSource(name="tiny"))),
        (value_shapes.spec_shape, spec(PathSource(path="/m"))),
        (value_shapes.spec_shape, spec(SimulatedSource())),
    ],
)
def test_all_that_a_value_says_is_shown_in_its_order(shape: Any, value: Any) -> None:
    said, told = shape(value), value.model_dump(mode="json")
    if isinstance(value, ModelSpec | FileFound):
        told["files"] = {"count": 0, "bytes": 0}
    if isinstance(value, FileFound):
        told |= {"pinned": None, "licence": "", "gated": False}
    assert told == said
    assert list(told) == list(said)


def api() -> dict[str, Any]:
    """The document of the admin API and of nodes' routes, made of routers that nobody asks."""
    app = FastAPI()
    for part in (
        Nodes(NONE, NONE, NONE, NONE),
        NodeLabels(NONE, NONE),
        NodeCaps(NONE, NONE),
        NodeModels(NONE, NONE),
        RegistrationTokens(NONE, NONE),
        APIKeys(NONE, NONE, NONE),
        EngineProfiles(NONE, NONE),
        NamedSecrets(NONE, NONE, NONE),
        Backends(NONE, NONE, NONE),
        Files(NONE, NONE, NONE),
        Brake(NONE),
        Upgrades(NONE, NONE),
        Models(NONE, NONE, NONE, NONE, NONE),
        Uploads(NONE),
        Aliases(NONE, NONE),
        Explanations(NONE, NONE, NONE, NONE, NONE),
        Plans(NONE, NONE),
        Policies(NONE, NONE),
        SchedulingOfModels(NONE, NONE),
        Replicas(NONE),
        RequestsForChange(NONE, NONE, NONE),
        Events(NONE, NONE),
        Status("gw", NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE),
        Load("gw", NONE, NONE, NONE, NONE, NONE, NONE),
        OpenAIModels(NONE),
        Joining(NONE, NONE, NONE, NONE, NONE),
        Heartbeats(NONE),
        SelfService(NONE, NONE),
        NodeSecrets(NONE, NONE),
        NodeFiles(NONE),
    ):
        app.include_router(part.router)
    return app.openapi()


def test_each_type_of_the_api_has_a_name_of_its_own_that_programs_can_bear() -> None:
    # what comes in and what goes out under one name would be told apart by `-Input` and `-Output`
    assert [] == [name for name in api()["components"]["schemas"] if not name.isidentifier()]


def test_no_route_of_the_api_is_silent_about_its_answer() -> None:
    document = api()
    silent = [
        f"{method} {path} {status}"
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        for status, answer in operation["responses"].items()
        if path.startswith("/api/") and status.startswith("2")
        if not names_a_type(answer["content"]["application/json"]["schema"])
    ]
    assert [] == silent


def names_a_type(schema: dict[str, Any]) -> bool:
    schema = schema.get("items", schema)  # Prometheus wants a list and nothing around it
    named = [each.get("$ref", "") for each in schema.get("anyOf", [schema])]
    return all(ref.rsplit("/", 1)[-1] in weft_api.__all__ for ref in named)


def test_every_type_is_an_answer_or_part_of_one() -> None:
    schemas = api()["components"]["schemas"]
    states = {name for name in weft_api.__all__ if name.endswith("State")}
    elsewhere = {"Problem", "Source", "StatusHead", "Replica", "ReplicaLine"}  # inlined
    assert set() == set(weft_api.__all__) - schemas.keys() - states - elsewhere


def test_every_module_with_routes_is_part_of_the_app() -> None:
    package = Path(weft_gateway.__path__[0])
    app = (package / "app.py").read_text()
    routes = [file for file in package.rglob("*.py") if "APIRouter(" in file.read_text()]
    modules = [".".join(file.relative_to(package.parent).with_suffix("").parts) for file in routes]
    assert len(modules) > 10
    assert [] == [module for module in modules if f"from {module} import " not in app]


def test_a_route_without_a_typed_answer_is_refused() -> None:
    async def typed() -> Answer[weft_api.Labels]: ...

    async def silent() -> dict[str, Any]: ...

    assert weft_api.Labels is answered_by(typed)
    with pytest.raises(TypeError, match="want Answer"):
        answered_by(silent)

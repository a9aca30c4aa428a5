"""What the agent's tests share: facts to be given, and the environment of real processes."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from weft_contracts.facts.node import Assigned
from weft_contracts.facts.source import BuiltinSource, SimulatedSource
from weft_contracts.facts.values import DeviceClaim, Member, ModelSpec
from weft_contracts.ids import ModelId, NodeId, ReplicaId

NODE = NodeId("n-aaaaaaaaaaaaaaaa")
MakeAssigned = Callable[..., Assigned]


@pytest.fixture
def node() -> NodeId:
    return NODE


@pytest.fixture
def assigned(node: NodeId) -> MakeAssigned:
    """A factory of assignments of a simulated model."""

    def make(replica: str = "m-x-1", *, epoch: int = 1, at: NodeId = node, **spec: Any) -> Assigned:
        source = SimulatedSource() if spec.get("engine", "simulated") == "simulated" else BuiltinSource(name="tiny")
        return Assigned(
            replica=ReplicaId(replica),
            model=ModelId(replica.rpartition("-")[0]),
            model_name="toy",
            revision=1,
            digest="0123456789abcdef",
            epoch=epoch,
            members=(Member(node=at, rank=0, devices=(DeviceClaim(index=0, bytes=1000),)),),
            spec=ModelSpec.model_validate({"source": source, "engine": "simulated"} | spec),
        )

    return make


@pytest.fixture
def process_env() -> dict[str, str]:
    """The environment of a started process: the packages that this test run sees, and no WEFT_ setting."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")}
    return kept | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path and Path(path).is_dir())}

"""What a start doesn't import: modules that take long, and that a process needs later or never.

A start is mostly imports, so who brings one of these back makes every start longer (bench/imports.py says by how much).
"""

import subprocess
import sys
from importlib.util import find_spec

import pytest

NOBODY = (
    "alembic",
    "asyncpg",
    "cryptography",
    "faststream",
    "fast_depends",
    "httpx",
    "huggingface_hub",
    "numpy",
    "opentelemetry.exporter",
    "opentelemetry.sdk",
    "requests",
    "sqlalchemy",
    "sqlmodel",
    "typer",
    "weft_engine.adapters.llamacpp",
    "weft_engine.adapters.openai",
    "weft_engine.adapters.vllm",
    "weft_runtime.asyncapi",
    "weft_testing",
)
"""What no service's start imports: a database before its connection, exporters without an endpoint, HTTP clients before
the first question, an AsyncAPI document that nobody has asked for."""
_WEB = ("fastapi", "grpc", "jinja2", "tokenizers")
_DATA = ("google.protobuf", "grpc", "weft_contracts.gen")
STARTS = {
    # four in one process: what one of them imported is told of all
    "services": (
        "weft_registry.app, weft_scheduler.app, weft_reconciler.app, weft_metadata_cache.app",
        (*NOBODY, *_WEB, *_DATA, "psutil", "opentelemetry"),
    ),
    "gateway": ("weft_gateway.app", (*NOBODY, "psutil")),
    "agent": ("weft_worker_agent.app", (*NOBODY, *_WEB, "opentelemetry", "pynvml")),
    "supervisor": (
        "weft_worker_agent.outbound.supervisor.supervisor",
        ("asyncio", "pydantic", "ssl", "starlette", "structlog", "subprocess", "typing_extensions"),
    ),
    "engine host": (
        "weft_engine.host",
        (*NOBODY, "httptools", "nats", "numpy", "starlette", "structlog", "uvicorn", "xllamacpp"),
    ),
    "launcher": (
        "weft_embedded.up",
        (*NOBODY, *_WEB, *_DATA, "nats", "pydantic", "starlette", "structlog", "uvicorn", "weft_contracts.facts"),
    ),
    "command line": (
        "weft_cli.main",
        ("asyncio", "http.client", "pydantic", "rich", "ssl", "weft_contracts", "weft_embedded", "weft_runtime"),
    ),
    "weft status": (
        "weft_cli.main, weft_cli.commands.status",
        ("asyncio", "grpc", "httpx", "nats", "pydantic", "rich", "weft_contracts.facts", "weft_runtime"),
    ),
}
"""By process: what is imported, and what must not be there then. A module stands for all below it."""


def loaded(modules: str) -> set[str]:
    """What a new process has loaded once it has imported these."""
    program = f"import sys, {modules}\nprint(*sys.modules, sep='\\n')"
    return set(
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    )


@pytest.mark.parametrize("process", STARTS)
def test_a_start_does_not_import_what_it_does_not_need(process: str) -> None:
    modules, unwanted = STARTS[process]
    there = loaded(modules)
    assert set() == {each for each in unwanted if each in there or any(name.startswith(f"{each}.") for name in there)}


def test_what_must_not_be_imported_is_there_to_be_imported() -> None:
    named = {each for _, unwanted in STARTS.values() for each in unwanted}
    assert {"alembic", "requests"} >= {each for each in named if find_spec(each) is None}

"""Private parts of libraries that Weft uses: each is there, where it is looked for, and its library has a cap.

A library may change these without a word. So a version beyond the cap is tried on purpose: raise the cap, run this, and
the name that moved fails here before a mesh does.
"""

import inspect
import re
import ssl
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from faststream.nats import NatsBroker
from mutmut.mutation import mutators
from nats.aio.client import Client
from nats.aio.subscription import Subscription
from nats.js.client import JetStreamContext
from uvicorn.protocols.http import httptools_impl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

ROOT = Path(__file__).resolve().parents[2]
LOG = "libs/eventlog/src/weft_eventlog"
HOT = "services/gateway/src/weft_gateway/inbound/http/hot_path_protocol.py"


def source(of: Any) -> str:
    return inspect.getsource(of)


def arguments(of: Callable[..., Any]) -> list[str]:
    return list(inspect.signature(of).parameters)


NATS: list[tuple[str, Callable[[], str], tuple[str, ...]]] = [
    (f"{LOG}/message_buffer.py", lambda: source(Client), ("_process_msg", "_subs", "_process_headers")),
    (f"{LOG}/message_sanitizer.py", lambda: source(Client), ("_process_msg",)),
    (f"{LOG}/one_socket.py", lambda: source(Client), ("_connect_to_server", "_transport")),
    (f"{LOG}/message_buffer.py", lambda: source(Subscription), ("_cb", "_jsi", "_pending_queue", "_received")),
    (
        f"{LOG}/message_buffer.py",
        lambda: source(JetStreamContext._JSI),
        ("_active", "_dseq", "_sseq", "_fciseq", "_cmeta"),
    ),
]
UVICORN: list[tuple[str, Callable[[], str], tuple[str, ...]]] = [
    (
        HOT,
        lambda: source(HttpToolsProtocol),
        (
            "_start_asgi_task",
            "_unset_keepalive_if_required",
            "pipeline",
            "cycle",
            "expect_100_continue",
            "server_state",
        ),
    ),
    ("services/gateway/src/weft_gateway/inbound/http/exchange.py", lambda: source(httptools_impl), ("STATUS_LINE",)),
]
OTHERS: list[tuple[str, Callable[[], str], tuple[str, ...]]] = [
    ("libs/runtime/src/weft_runtime/broker.py", lambda: " ".join(dir(NatsBroker())), ("_connect",)),
    (
        "services/worker-agent/src/weft_worker_agent/outbound/mesh/mesh_trust.py",
        lambda: " ".join(dir(ssl.SSLObject)) + source(ssl),
        ("_sslobj",),
    ),
    (
        "libs/devtools/src/weft_devtools/mutation/mutants.py",
        lambda: source(mutators),
        (
            "operator_number",
            "operator_name",
            "operator_augmented_assignment",
            "operator_remove_unary_ops",
            "operator_symmetric_string_methods_swap",
            "operator_keywords",
            "operator_swap_op",
            "operator_if_exp",
        ),
    ),
]


@pytest.mark.parametrize(
    ("file", "theirs", "names"),
    [*NATS, *UVICORN, *OTHERS],
    ids=lambda value: value[-40:] if isinstance(value, str) else "",
)
def test_what_is_borrowed_is_there_and_is_used(file: str, theirs: Callable[[], str], names: tuple[str, ...]) -> None:
    text, ours = theirs(), (ROOT / file).read_text()
    assert [] == [name for name in names if not re.search(rf"\b{name}\b", text)]
    assert [] == [name for name in names if not re.search(rf"\b{name}\b", ours)]


def test_messages_come_with_these_arguments_and_the_servers_class_with_these_fields() -> None:
    assert ["self", "sid", "subject", "reply", "data", "headers"] == list(
        inspect.signature(Client._process_msg).parameters
    )
    assert ["self", "s"] == list(inspect.signature(Client._connect_to_server).parameters)
    assert ["self", "cycle", "app"] == list(inspect.signature(HttpToolsProtocol._start_asgi_task).parameters)


class Body(msgspec.Struct, forbid_unknown_fields=True):
    needed: int


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"{}", "Object missing required field `needed`"),
        (b'{"needed":1,"more":2}', "Object contains unknown field `more`"),
        (b'{"needed":"x"}', "Expected `int`, got `str` - at `$.needed`"),
    ],
)
def test_msgspec_says_what_the_gateway_reads_in_its_sentences(body: bytes, says: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=f"^{re.escape(says)}$"):
        msgspec.json.decode(body, type=Body)


CAPPED = {
    "libs/devtools": {"mutmut"},
    "libs/eventlog": {"nats-py"},
    "libs/runtime": {"nats-py", "faststream", "uvicorn"},
    "services/gateway": {"uvicorn", "msgspec"},
}


@pytest.mark.parametrize("member", CAPPED)
def test_a_library_of_which_private_parts_are_used_has_a_cap(member: str) -> None:
    wanted: list[str] = tomllib.loads((ROOT / member / "pyproject.toml").read_text())["project"]["dependencies"]
    capped = {re.split(r"[^\w.-]", each)[0] for each in wanted if re.search(r",<\d", each)}
    assert set() == CAPPED[member] - capped

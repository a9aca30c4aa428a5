"""`weft aliases`: what is typed becomes one request, and what can't be meant is refused before any."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner
from weft_cli.app import app
from weft_cli.commands.explain_alias import explained, show
from weft_client.failure import Exit, Failure
from weft_contracts.aliases import MOST_TARGETS, AliasTarget
from weft_contracts.facts.name import Aliased
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import ModelId
from weft_contracts.subjects import name
from weft_testing.fake_gateway import FakeGateway
from weft_testing.fleet_log import FleetLog


@pytest.fixture(autouse=True)
def _known(fake: FakeGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_URL", fake.url)
    fake.otherwise = (200, {"request": "q-1", "alias": "chat"})


def weft(line: str) -> Any:
    return CliRunner().invoke(app, line.split())


@pytest.mark.parametrize(
    ("line", "body"),
    [
        (
            "local=80 cloud=20",
            {"rule": "weights", "targets": [{"model": "local", "weight": 80}, {"model": "cloud", "weight": 20}]},
        ),
        ("org/local cloud", {"rule": "weights", "targets": [{"model": "org/local"}, {"model": "cloud"}]}),
        ("local cloud --in-order", {"rule": "order", "targets": [{"model": "local"}, {"model": "cloud"}]}),
    ],
)
def test_an_alias_is_set_as_it_was_typed(fake: FakeGateway, line: str, body: dict[str, Any]) -> None:
    done = weft(f"aliases set chat {line}")
    assert (0, [("PUT", "/api/aliases/chat", body)]) == (done.exit_code, fake.asked), done.output
    assert done.stdout.startswith("chat stands for")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("local=0", "a share is a whole number from 1"),
        ("local=10001", "a share is a whole number from 1"),
        ("local=", "a share is a whole number from 1"),
        ("local=²", "a share is a whole number from 1"),
        ("local=80% cloud=20%", "a share is a whole number from 1"),
        ("local=2 cloud --in-order", "say local"),
        (" ".join(f"m{number}" for number in range(MOST_TARGETS + 1)), f"{MOST_TARGETS} models at most"),
    ],
)
def test_what_can_t_be_meant_is_refused_before_anything_is_asked(fake: FakeGateway, line: str, why: str) -> None:
    done = weft(f"aliases set chat {line}")
    assert isinstance(done.exception, Failure)
    assert done.exception.exit == Exit.USAGE
    assert why in str(done.exception)
    assert [] == fake.asked


def test_an_alias_is_removed_by_its_name(fake: FakeGateway) -> None:
    assert 0 == weft("aliases remove chat").exit_code
    assert [("DELETE", "/api/aliases/chat", None)] == fake.asked


def test_the_list_has_a_line_for_each_model_with_its_share(fake: FakeGateway) -> None:
    def target(model: str, weight: int) -> dict[str, Any]:
        return {"model": model, "weight": weight, "state": "ready", "reason": None, "ready": 2, "wanted": 2}

    items = [
        {"name": "chat", "rule": "weights", "targets": [target("a", 2), target("b", 1)], "set_at": 0.0},
        {"name": "code", "rule": "order", "targets": [target("a", 1), target("b", 1)], "set_at": 0.0},
    ]
    fake.otherwise = (200, {"items": items, "next": None})

    lines = [line.split() for line in weft("aliases").stdout.splitlines() if line]

    assert ["chat", "a", "66.7", "%", "ready", "2/2"] in lines
    assert ["chat", "b", "33.3", "%", "ready", "2/2"] in lines
    assert ["code", "b", "2.", "ready", "2/2"] in lines


def test_an_alias_is_explained_by_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    # given
    log = FleetLog()
    local = log.model("local", ModelSpec(source=SimulatedSource(), engine="simulated"), replicas=2)
    targets = (AliasTarget(model=local, weight=3), AliasTarget(model=ModelId("m-gone")))
    at = log.add(name("model", "chat"), Aliased(name="chat", rule="weights", targets=targets)).sequence
    # when
    found = explained(log.commits, log.fleet, log.fleet.aliases["chat"])
    # then
    assert at == found.position
    assert [("local", "75 %", 0, 2, ""), ("m-gone", "25 %", 0, 0, "it was deleted")] == [
        (each.model, each.share, each.ready, each.wanted, each.reason) for each in found.targets
    ]
    show(found, as_json=True)
    assert "chat" == json.loads(capsys.readouterr().out)["alias"]
    show(found, as_json=False)
    assert "drawn by share" in capsys.readouterr().out

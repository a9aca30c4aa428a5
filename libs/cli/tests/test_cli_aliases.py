"""`weft aliases`: what is typed becomes one request, and what can't be meant is refused before any."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner
from weft_cli.app import app
from weft_client.failure import Exit, Failure
from weft_contracts.aliases import MOST_TARGETS
from weft_testing.fake_gateway import FakeGateway


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


def test_an_alias_is_explained_with_each_models_share(fake: FakeGateway) -> None:
    # given
    targets = [
        {"model": "local", "weight": 3, "state": "ready", "reason": None, "ready": 0, "wanted": 2},
        {"model": "m-gone", "weight": 1, "state": "deleted", "reason": None, "ready": 0, "wanted": 0},
    ]
    alias = {"name": "chat", "rule": "weights", "set_at": 1.0, "position": 7, "targets": targets}
    fake.answers["GET", "/api/explanations/chat"] = (200, {"kind": "alias", "alias": alias})
    # when
    told = weft("explain chat").stdout
    # then
    assert "chat is an alias, set at log position 7: each request is drawn by share" in told
    lines = [line.split() for line in told.splitlines()]
    assert ["local", "75", "%", "0/2", "-"] in lines
    assert ["m-gone", "25", "%", "0/0", "it", "was", "deleted"] in lines
    as_json = json.loads(weft("explain chat --json").stdout)
    assert ("chat", ["75 %", "25 %"]) == (as_json["alias"], [each["share"] for each in as_json["targets"]])

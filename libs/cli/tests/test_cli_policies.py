"""`weft policies`: a file becomes one request, and one that holds no policy none."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner
from weft_cli.app import app
from weft_client.failure import Exit, Failure
from weft_contracts.written_policy import policy_of
from weft_contracts.yaml_document import document
from weft_placement import BINPACK
from weft_testing.fake_gateway import FakeGateway

NIGHT = "name: night\napart: no\nslots: 8\nweights:\n  binpack: 1\n  files: 0.5\n"
WEIGHTS = {"idle": 0.0, "binpack": 1.0, "spread": 0.0, "snug": 0.0, "files": 0.5, "devices": 0.0}
SHOWN: dict[str, Any] = {
    "name": "night",
    "digest": "d1",
    "builtin": False,
    "default": True,
    "apart": "no",
    "slots": 8,
    "weights": WEIGHTS,
    "models": ["m", "n"],
}


@pytest.fixture(autouse=True)
def _known(fake: FakeGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_URL", fake.url)
    fake.otherwise = (200, {"request": "q-1", "policy": "night"})


def weft(line: str) -> Any:
    return CliRunner().invoke(app, line.split())


def test_a_policy_is_set_as_its_file_says(fake: FakeGateway, tmp_path: Path) -> None:
    (tmp_path / "night.yaml").write_text(NIGHT)
    done = weft(f"policies set {tmp_path}/night.yaml")
    body = {"apart": "no", "slots": 8, "weights": WEIGHTS}
    assert (0, [("PUT", "/api/policies/night", body)]) == (done.exit_code, fake.asked), done.output
    assert done.stdout.startswith("models that name night are placed by it")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, " can't be read: "),
        ("a: [", ": it is no YAML: "),
        ("[]", ": it holds no fields: want name and weights"),
        (NIGHT.replace("binpack", "bnipack"), ": weights.bnipack: is no field of a policy: want one of idle, binpack"),
        (NIGHT.replace("slots: 8", "slots: many"), ": slots: want a valid integer"),
        (NIGHT.replace("apart: no", "apart: far"), ": apart: want 'zones', 'nodes' or 'no'"),
    ],
)
def test_a_file_that_holds_no_policy_is_wrong_usage_and_says_where(
    fake: FakeGateway, tmp_path: Path, text: str | None, sentence: str
) -> None:
    file = tmp_path / "night.yaml"
    if text is not None:
        file.write_text(text)
    failure = weft(f"policies set {file}").exception
    assert isinstance(failure, Failure)
    assert (Exit.USAGE, []) == (failure.exit, fake.asked)
    assert str(failure).startswith(f"{file}{sentence}")


@pytest.mark.parametrize(
    ("line", "method", "path", "words"),
    [
        ("default night", "POST", "/api/policies/night/default", "models that name no policy are placed by night"),
        ("withdraw night", "DELETE", "/api/policies/night", "the policy night is withdrawn"),
    ],
)
def test_a_policy_is_chosen_and_withdrawn_by_its_name(
    fake: FakeGateway, line: str, method: str, path: str, words: str
) -> None:
    done = weft(f"policies {line}")
    assert (0, [(method, path)]) == (done.exit_code, [each[:2] for each in fake.asked]), done.output
    assert words in done.stdout


def test_the_list_tells_what_counts_who_names_it_and_which_one_is_the_meshs_own(fake: FakeGateway) -> None:
    other: dict[str, Any] = SHOWN | {
        "name": "spread",
        "builtin": True,
        "default": False,
        "apart": "zones",
        "models": [],
        "digest": "d2",
    }
    fake.otherwise = (200, {"items": [SHOWN, other], "next": None})
    lines = [
        [part.strip() for part in line.split("   ") if part.strip()] for line in weft("policies").stdout.split("\n")
    ]
    row = " ".join(next(line for line in lines if any("night" in part for part in line)))
    assert row.split() == ["->", "night", "an", "admin", "no", "8", "binpack", "1", "files", "0.5", "m,", "n", "d1"]
    assert ["-> night: the mesh's own, for models that name none"] in lines
    assert "Weft" in " ".join(next(line for line in lines if any("spread" in part for part in line)))


def test_what_is_shown_of_a_policy_is_a_file_that_sets_the_same(fake: FakeGateway) -> None:
    fake.otherwise = (200, SHOWN)
    told = policy_of(document(weft("policies show night").stdout))
    assert policy_of(document(NIGHT)) == told
    assert SHOWN == json.loads(weft("policies show night --json").stdout)


def test_a_deploy_names_the_policy_that_was_typed_and_else_none(fake: FakeGateway) -> None:
    fake.otherwise = (201, {"request": "q-1", "model": "m-1", "revision": "1"})
    weft("deploy simulated --name m --policy night --wait 0")
    weft("deploy simulated --name m --wait 0")
    assert ["night", None] == [body["spec"].get("policy") for _, _, body in fake.asked]


def test_an_explanation_tells_the_policy_by_its_name_and_digest(fake: FakeGateway) -> None:
    found: dict[str, Any] = {
        "replica": "m-1",
        "model": "m",
        "position": 1,
        "policy": BINPACK.text,
        "outcome": "not decided yet",
        "nodes": [],
        "receipt": None,
        "recomputed": True,
        "refusals": {},
        "last_end": None,
        "troubles": [],
    }
    fake.otherwise = (200, {"kind": "replica", "replica": found})
    assert f"policy binpack ({BINPACK.digest})" in weft("explain m").stdout


def test_a_deploy_names_the_priority_that_was_typed_and_else_none(fake: FakeGateway) -> None:
    fake.otherwise = (201, {"request": "q-1", "model": "m-1", "revision": "1"})
    weft("deploy simulated --name m --priority -3 --wait 0")
    weft("deploy simulated --name m --wait 0")
    assert [-3, None] == [body["spec"].get("priority") for _, _, body in fake.asked]

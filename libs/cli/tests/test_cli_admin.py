"""`weft nodes`, `weft tokens` and `weft brake`: what each asks of the gateway, and what it says."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner
from weft_cli.app import app
from weft_client.failure import Exit, Failure
from weft_testing.fake_gateway import FakeGateway

Weft = Callable[[str], Any]


@pytest.fixture
def weft(fake: FakeGateway, monkeypatch: pytest.MonkeyPatch) -> Weft:
    """Runs a command line against the fake gateway."""
    monkeypatch.setenv("WEFT_URL", fake.url)
    return lambda line: CliRunner().invoke(app, line.split())


LABELS = {"labels": {"a": "1"}, "own": {}, "set": {"a": "1", "b": None}}
CAPS = {"caps": {"replicas_per_model": 2, "vram_budget": None}}
LABELLED = "label=zone%3Da&label=fast%3D1"
HAS: dict[str, Any] = {"node": "n-1", "engine": "e", "version": "1.0", "vendor": "cpu"}


FILES = {"files": "f1", "model_name": "m", "nodes": "n", "in_use": ""}
USED = {**FILES, "in_use": "n"}


@pytest.mark.parametrize(
    ("line", "says", "method", "path", "body", "words"),
    [
        ("nodes approve n", {}, "POST", "/api/nodes/n/approve", {}, "n is approved"),
        ("nodes approve a/b", {}, "POST", "/api/nodes/a%2Fb/approve", {}, "approved"),
        ("nodes reject n --reason no", {}, "POST", "/api/nodes/n/reject", {"reason": "no"}, "turned away"),
        ("nodes cordon n --reason fan", {}, "POST", "/api/nodes/n/cordon", {"reason": "fan"}, "cordoned"),
        ("nodes uncordon n", {}, "POST", "/api/nodes/n/uncordon", {"reason": ""}, "takes replicas again"),
        ("nodes label n", LABELS, "GET", "/api/nodes/n/labels", None, "a=1  (set by an admin)"),
        ("nodes label n a=1 b-", LABELS, "PATCH", "/api/nodes/n/labels", {"a": "1", "b": None}, "b-  (taken away"),
        ("nodes label n a=1 --replace", LABELS, "PUT", "/api/nodes/n/labels", {"a": "1"}, "a=1"),
        ("nodes label n --return", LABELS, "DELETE", "/api/nodes/n/labels", None, "a=1"),
        ("nodes max-replicas n 2", CAPS, "PUT", "/api/nodes/n/max-replicas-per-model", {"value": 2}, "n takes 2 rep"),
        ("nodes max-replicas n --reset", CAPS, "DELETE", "/api/nodes/n/max-replicas-per-model", None, "n takes"),
        ("nodes vram-budget n 80%", CAPS, "PUT", "/api/nodes/n/vram-budget", {"value": "80%"}, "all of each device"),
        ("nodes vram-budget n --reset", CAPS, "DELETE", "/api/nodes/n/vram-budget", None, "all of each device"),
        ("nodes remove n", {}, "DELETE", "/api/nodes/n?force=false&deadline_s=60&reason=", None, "removed"),
        ("nodes remove n --force", {}, "DELETE", "/api/nodes/n?force=true&deadline_s=60&reason=", None, "removed"),
        ("nodes resume n", {}, "POST", "/api/nodes/n/resume", {}, "takes replicas again"),
        ("tokens revoke t", {}, "DELETE", "/api/tokens/t", None, "revoked"),
        ("engines remove e", {}, "DELETE", "/api/engine-profiles/e", None, "the mesh knows e no more"),
        ("backends install e --node n", HAS, "POST", "/api/nodes/n/backends/e", {}, "n is to have e 1.0 for cpu"),
        ("backends uninstall e --node n", {}, "DELETE", "/api/nodes/n/backends/e", None, "n removes e"),
        (
            "backends uninstall e --node n --version 1.0",
            {},
            "DELETE",
            "/api/nodes/n/backends/e?version=1.0",
            None,
            "n removes e 1.0",
        ),
        ("backends upgrade e", HAS, "POST", "/api/backends/e/upgrade", {}, "replicas of e move"),
        ("backends remove e", {}, "DELETE", "/api/backend-recipes/e", None, "the recipe of e is withdrawn"),
        ("files fetch m", FILES, "POST", "/api/files/fetch", {"model": "m"}, "n fetches the files of m"),
        ("files fetch m --nodes 2", FILES, "POST", "/api/files/fetch", {"model": "m", "count": 2}, "n fetches"),
        ("files fetch m --node n", FILES, "POST", "/api/files/fetch", {"model": "m", "nodes": ["n"]}, "n fetches"),
        ("files pin m", FILES, "POST", "/api/files/pin", {"files": "m", "nodes": []}, "n keeps the files of m"),
        ("files unpin m", FILES, "POST", "/api/files/unpin", {"files": "m", "nodes": []}, "pinned no more on n"),
        ("files remove m", FILES, "POST", "/api/files/remove", {"files": "m", "nodes": []}, "n removes the files of m"),
        ("files remove m", USED, "POST", "/api/files/remove", {"files": "m", "nodes": []}, ", on n once nothing uses"),
        ("brake lift --reason fire", {}, "POST", "/api/brake/lift", {"reason": "fire"}, "lifted"),
    ],
)
def test_each_command_asks_the_gateway_once_and_says_what_came_of_it(
    fake: FakeGateway, weft: Weft, line: str, says: Any, method: str, path: str, body: Any, words: str
) -> None:
    fake.otherwise = (200, says)
    done = weft(line)
    assert (0, [(method, path, body)]) == (done.exit_code, fake.asked), done.output
    assert words in done.stdout


@pytest.mark.parametrize("beside", [{}, {"version": "1.0"}])
def test_an_engine_is_told_of_by_its_profile_alone_or_with_its_version(
    fake: FakeGateway, weft: Weft, tmp_path: Path, beside: dict[str, str]
) -> None:
    fake.otherwise = (201, {"engine": "echo", "digest": "d1"})
    profile = {"name": "echo", "serves": ["chat"]}
    (tmp_path / "echo.json").write_text(json.dumps({"profile": profile, **beside} if beside else profile))
    done = weft(f"engines add {tmp_path}/echo.json")
    assert (0, [("POST", "/api/engine-profiles", profile)]) == (done.exit_code, fake.asked), done.output
    assert "the mesh knows echo by the profile d1" in done.stdout


@pytest.mark.parametrize(("text", "words"), [(None, "can't be read as JSON"), ("{", "can't be"), ("[]", "no JSON obj")])
def test_a_file_without_a_profile_is_wrong_usage(
    fake: FakeGateway, weft: Weft, tmp_path: Path, text: str | None, words: str
) -> None:
    if text is not None:
        (tmp_path / "echo.json").write_text(text)
    failure = weft(f"engines add {tmp_path}/echo.json").exception
    assert isinstance(failure, Failure)
    assert (Exit.USAGE, True, []) == (failure.exit, words in str(failure), fake.asked)


def test_engines_are_listed_with_who_the_mesh_knows_them_from(fake: FakeGateway, weft: Weft) -> None:
    known = {"serves": ["chat"], "formats": [], "vendors": ["cpu"]}
    items = [
        {"name": "echo", "builtin": False, "digest": "d1", **known},
        {"name": "vllm", "builtin": True, "digest": "d2", **known},
    ]
    fake.otherwise = (200, {"items": items, "next": None})
    rows = [line.split("  ") for line in weft("engines").stdout.splitlines()]
    assert ["echo", "an admin", "chat", "no files", "cpu", "d1"] in [[w.strip() for w in row if w] for row in rows]
    assert ["vllm", "Weft", "chat", "no files", "cpu", "d2"] in [[w.strip() for w in row if w] for row in rows]


RECIPE = """
engine: echo
variants:
  - {vendor: cpu, package: weft-echo, version: "1.0", requirements: ["weft-echo==1.0"], disk: 50_000_000}
"""


@pytest.mark.parametrize("beside", [False, True])
def test_a_recipe_is_read_from_yaml_alone_or_with_its_engines_profile(
    fake: FakeGateway, weft: Weft, tmp_path: Path, beside: bool
) -> None:
    fake.otherwise = (201, {"engine": "echo"})
    text = "recipe:" + RECIPE.replace("\n", "\n  ") + "\nprofile: {name: echo}\n" if beside else RECIPE
    (tmp_path / "echo.yaml").write_text(text)
    done = weft(f"backends add {tmp_path}/echo.yaml")
    assert 0 == done.exit_code, done.output
    ((method, path, body),) = fake.asked
    assert ("POST", "/api/backend-recipes") == (method, path)
    assert ("echo", 50_000_000) == (body["recipe"]["engine"], body["recipe"]["variants"][0]["disk"])
    assert ({"name": "echo"} if beside else None) == body.get("profile")
    assert "nodes install echo by this recipe" in done.stdout


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "can't be read"),
        ("a: [", "is no YAML"),
        ("[]", "holds no fields"),
        (RECIPE.replace("weft-echo==1.0", "--trusted-host=x"), "is no requirement: want a name and versions"),
        (RECIPE.replace("disk", "dsik"), "variants.0.dsik is not a field of a recipe"),
    ],
)
def test_a_recipe_that_can_not_be_used_is_wrong_usage_and_reaches_nobody(
    fake: FakeGateway, weft: Weft, tmp_path: Path, text: str | None, words: str
) -> None:
    if text is not None:
        (tmp_path / "echo.yaml").write_text(text)
    failure = weft(f"backends add {tmp_path}/echo.yaml").exception
    assert isinstance(failure, Failure)
    assert (Exit.USAGE, []) == (failure.exit, fake.asked)
    assert words in str(failure)


def test_backends_are_listed_by_node_with_what_is_being_installed(fake: FakeGateway, weft: Weft) -> None:
    installing = {"replica": "m-1-1", "model_name": "m", "engine": "vllm", "since": 1.0, "last_end": "no index"}
    there = {"engine": "simulated", "version": "1", "vendors": ["cpu"], "profile": "p"}
    items: list[dict[str, Any]] = [
        {"node": "n-1", "node_name": "one", "allowed": True, "installed": [there], "installing": [installing]},
        {"node": "n-2", "node_name": "two", "allowed": False, "installed": [], "installing": []},
    ]
    fake.otherwise = (200, {"items": items, "next": None})
    rows = [[w.strip() for w in line.split("  ") if w.strip()] for line in weft("backends").stdout.splitlines()]
    assert ["one", "simulated", "1", "cpu", "installed", "-"] in rows
    assert ["one", "vllm", "-", "-", "installing", "no index"] in rows
    assert ["two", "-", "-", "-", "installs nothing", "WEFT_INSTALL is none there"] in rows


def test_what_a_node_installed_is_listed_with_its_size_and_what_uses_it(fake: FakeGateway, weft: Weft) -> None:
    made: dict[str, Any] = {"engine": "vllm", "vendor": "cpu", "bytes": 3 << 30, "leaves": False}
    used: dict[str, Any] = {
        **made,
        "name": "vllm-2",
        "version": "2",
        "used_by": ["m-1-1", "m-1-2"],
        "unused_since": None,
    }
    unused: dict[str, Any] = {
        **made,
        "name": "vllm-1",
        "version": "1",
        "used_by": [],
        "unused_since": 1e9,
        "leaves": True,
    }
    ahead = {"engine": "echo", "vendor": "cpu", "version": "1.0", "here": False, "fault": None, "final": False}
    item: dict[str, Any] = {
        "node": "n-1",
        "node_name": "one",
        "allowed": True,
        "installed": [
            {"engine": "vllm", "version": "2", "vendors": ["cpu"], "profile": "p"},
            {"engine": "simulated", "version": "1", "vendors": ["cpu"], "profile": "p"},
        ],
        "installing": [],
        "environments": [used, unused],
        "wanted": [
            ahead,
            {**ahead, "engine": "here", "here": True},
            {**ahead, "engine": "full", "fault": "the disk is full"},
            {**ahead, "engine": "never", "fault": "no libgomp", "final": True},
        ],
    }
    fake.otherwise = (200, {"items": [item], "next": None})
    rows = [[w.strip() for w in line.split("  ") if w.strip()] for line in weft("backends").stdout.splitlines()]
    assert [
        ["one", "vllm", "2", "cpu", "installed", "3.0 GiB, used by m-1-1, m-1-2"],
        ["one", "vllm", "1", "cpu", "installed"],
        ["one", "simulated", "1", "cpu", "installed", "-"],
        ["one", "echo", "1.0", "cpu", "installing", "asked for ahead of need"],
        ["one", "full", "1.0", "cpu", "tried again", "the disk is full"],
        ["one", "never", "1.0", "cpu", "failed", "no libgomp"],
    ] == [row[:5] if row[2] == "1" and row[1] == "vllm" else row for row in rows[1:]]
    assert rows[2][5].startswith("3.0 GiB, unused since 2001-09-0")
    assert rows[2][5].endswith("; it goes")


def test_an_engine_is_installed_on_all_nodes_with_some_labels_and_who_refuses_says_why(
    fake: FakeGateway, weft: Weft
) -> None:
    node = {"id": "n", "state": "healthy"}
    nodes = [{**node, "name": "one"}, {**node, "name": "two"}, {**node, "name": "out", "state": "pending"}]
    refusal = {"detail": "one can't install e: it may install none"}
    fake.answers["GET", f"/api/nodes?{LABELLED}&limit=1000"] = (200, {"items": nodes, "next": None})
    fake.answers["POST", "/api/nodes/one/backends/e"] = (409, refusal)
    fake.answers["POST", "/api/nodes/two/backends/e"] = (200, HAS)
    done = weft("backends install e --selector zone=a,fast=1")
    assert 0 == done.exit_code, done.output
    assert ["two is to have e 1.0 for cpu: `weft backends` tells", "one can't install e: it may install none"] == [
        line for line in done.stdout.splitlines() if line
    ]
    assert not [path for _, path, _ in fake.asked if "/out/" in path]
    failure = weft("backends install e --selector a=b --node n").exception
    assert "takes no --selector" in str(failure)


def test_a_tokens_secret_is_printed_with_the_line_for_the_new_machine(fake: FakeGateway, weft: Weft) -> None:
    fake.otherwise = (200, {"token": "t-1", "secret": "s3cret"})
    done = weft("tokens create --name rack --expires 7d --auto-approve")
    wanted = {"name": "rack", "expires_in_s": 604_800, "auto_approve": True}
    assert [("POST", "/api/tokens", wanted)] == fake.asked
    assert f"weft worker --join {fake.url} --token s3cret" in done.stdout


def test_tokens_are_listed_with_what_is_left_of_them(fake: FakeGateway, weft: Weft) -> None:
    token = {"id": "t-1", "name": "rack", "state": "live", "auto_approve": True, "expires_at": None}
    fake.otherwise = (200, {"items": [token], "next": None})
    done = weft("tokens")
    assert ["t-1", "rack", "live", "yes", "never"] == done.stdout.splitlines()[-1].split()


def test_nodes_are_found_by_state_name_and_labels(fake: FakeGateway, weft: Weft) -> None:
    fake.otherwise = (200, {"items": [], "next": None})
    assert 0 == weft("nodes list --status pending --name n --label zone=a --label disk").exit_code
    assert "/api/nodes?state=pending&name=n&label=zone%3Da&label=disk&limit=1000" == fake.asked[0][1]


@pytest.mark.parametrize(
    "line",
    [
        "nodes reject n",
        "nodes label n zone",
        "nodes label n a- --replace",
        "nodes label n a=1 --return",
        "nodes max-replicas n",
        "nodes max-replicas n 2 --reset",
        "nodes max-replicas n many",
        "nodes vram-budget n",
        "drain n --deadline soon",
        "nodes drain n --deadline 0s",
        "nodes remove n --deadline soon",
        "tokens create --expires soon",
        "tokens create --expires 0s",
        "nodes --url http://127.0.0.1:1 approve n",
        "nodes --json approve n",
        "brake",
    ],
)
def test_what_cant_be_meant_is_wrong_usage_and_asks_nothing(fake: FakeGateway, weft: Weft, line: str) -> None:
    done = weft(line)
    failure = done.exception
    assert Exit.USAGE == (failure.exit if isinstance(failure, Failure) else done.exit_code), done.output
    assert [] == fake.asked


def test_files_are_listed_by_node_with_a_bar_while_they_come(fake: FakeGateway, weft: Weft) -> None:
    # given a model whose files lie on one node, come on another, and can't be had on a third
    progress: dict[str, Any] = {"fetched": 50, "total": 100, "about": "fetching 50 % of 100 B"}
    plain: dict[str, Any] = {
        "state": "here",
        "pinned": False,
        "used_by": [],
        "leaves": False,
        "fault": None,
        "about": None,
        "progress": None,
    }
    nodes: list[dict[str, Any]] = [
        {"node_name": "one", **plain, "pinned": True, "used_by": ["m-1-1"], "leaves": True},
        {"node_name": "two", **plain, "state": "coming", "progress": progress},
        {"node_name": "three", **plain, "state": "failed", "about": "the last try failed: the hub is away"},
        {"node_name": "four", **plain, "about": "the last copy of what was sent, kept while m is deployed"},
    ]
    items: list[dict[str, Any]] = [
        {"files": "f1", "source": "hf:o/m", "models": ["m"], "bytes": 100, "nodes": nodes},
        {"files": "f2", "source": None, "models": [], "bytes": 100, "nodes": []},
    ]
    fake.otherwise = (200, {"items": items, "next": None})
    # then
    rows = [[w.strip() for w in line.split("  ") if w.strip()] for line in weft("files").stdout.splitlines()]
    size = rows[1][2]
    assert ["m", "f1", size, "one", "here", "pinned, used by m-1-1, goes once nothing uses it"] in rows
    assert ["m", "f1", size, "two", "coming", "[########........] fetching 50 % of 100 B"] in rows
    assert ["m", "f1", size, "three", "failed", "the last try failed: the hub is away"] in rows
    assert ["m", "f1", size, "four", "here", "the last copy of what was sent, kept while m is deployed"] in rows
    assert ["no model (of an older revision)", "f2", size, "-", "-", "on no node"] in rows


def test_nodes_are_named_or_counted_and_not_both(fake: FakeGateway, weft: Weft) -> None:
    failure = weft("files fetch m --node n --nodes 2").exception
    assert isinstance(failure, Failure)
    assert (Exit.USAGE, []) == (failure.exit, fake.asked)

"""`weft apply`: what a file says beside what there is becomes the requests that lie between, and no others."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner
from weft_cli.app import app
from weft_cli.apply.fleet_file import FleetFault, fleet_file_of
from weft_client.failure import Failure
from weft_contracts.engines import BUILTIN
from weft_contracts.yaml_document import document
from weft_testing.fake_gateway import FakeGateway

COMMIT = "0123456789abcdef0123456789abcdef01234567"
SPEC: dict[str, Any] = {
    "source": {"kind": "simulated"},
    "engine": "simulated",
    "context_tokens": 1024,
    "concurrency": 8,
    "engine_args": {},
    "min_replicas": 1,
    "max_replicas": 1,
    "spread_all": False,
    "selector": {},
    "policy": "",
    "strategy": "binpack",
    "weights": {"format": "none"},
    "adapters": [],
    "files": {"count": 0, "bytes": 0},
}
WEIGHTS = {"idle": 0.0, "binpack": 1.0, "spread": 0.0, "snug": 0.0, "files": 0.0, "devices": 0.0}
WHOLE = """
models:
  - {source: simulated, name: x, replicas: 2}
aliases:
  - {name: chat, models: [x]}
policies:
  - {name: night, apart: "no", weights: {binpack: 1}}
default_policy: night
"""


class World:
    """A mesh of models, aliases and policies that takes what it is asked."""

    def __init__(self, fake: FakeGateway, folder: Path) -> None:
        self.fake = fake
        self.file = folder / "fleet.yaml"
        self.aliases: list[dict[str, Any]] = []
        self.policies: list[dict[str, Any]] = [policy("balanced", builtin=True, default=True)]
        self.models: list[dict[str, Any]] = []
        self.nodes: list[dict[str, Any]] = []
        self.schedulings: list[dict[str, Any]] = []
        fake.otherwise = (200, {"request": "q-1", "revision": "2"})

    def model(self, name: str, **spec: Any) -> None:
        row = {"name": name, "id": f"m-{name}", "revision": 1, "digest": "d", "state": "ready", "reason": None}
        self.models.append({**row, "wanted": 1, "ready": 1, "source": "", "serves": 1, "spec": {**SPEC, **spec}})

    def scheduled(self, name: str, **said: Any) -> None:
        self.schedulings.append({"model_name": name, **said})

    def apply(self, text: str, *options: str) -> Any:
        self.file.write_text(text)
        calm: dict[str, Any] = {"problems": [], "brake": None, "health": "ok"}
        status: dict[str, Any] = {"nodes": self.nodes, "models": self.models, "replicas": [], "mesh": calm}
        status["log"] = {"position": 0}
        self.fake.answers |= {
            ("GET", "/api/status"): (200, status),
            ("GET", "/api/aliases?limit=1000"): (200, {"items": self.aliases, "next": None}),
            ("GET", "/api/policies?limit=1000"): (200, {"items": self.policies, "next": None}),
            ("GET", "/api/scheduling?limit=1000"): (200, {"items": self.schedulings, "next": None}),
        }
        self.fake.asked.clear()
        return CliRunner().invoke(app, ["apply", str(self.file), *options])

    @property
    def asked(self) -> list[tuple[str, str, Any]]:
        """What would change something."""
        return [each for each in self.fake.asked if each[0] != "GET"]


def policy(name: str, *, builtin: bool = False, default: bool = False) -> dict[str, Any]:
    shown = {"name": name, "digest": "d", "builtin": builtin, "default": default, "apart": "no", "slots": 64}
    return {**shown, "weights": WEIGHTS, "models": []}


@pytest.fixture
def world(fake: FakeGateway, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    monkeypatch.setenv("WEFT_URL", fake.url)
    return World(fake, tmp_path)


def test_what_others_name_comes_first(world: World) -> None:
    done = world.apply(WHOLE, "--yes")

    assert 0 == done.exit_code, done.output
    assert [
        ("PUT", "/api/policies/night"),
        ("POST", "/api/policies/night/default"),
        ("POST", "/api/models"),
        ("PUT", "/api/aliases/chat"),
    ] == [each[:2] for each in world.asked]
    told = world.asked[2][2]
    assert ("x", 2, 2) == (told["name"], told["spec"]["min_replicas"], told["spec"]["max_replicas"])
    assert {"rule": "weights", "targets": [{"model": "x", "weight": 1}]} == world.asked[3][2]
    assert done.stdout.splitlines()[:5] == [
        "+ policy night",
        "~ default policy: balanced → night",
        "+ model x: simulated: with simulated, 2 of it",
        "+ alias chat: x=1",
        "3 to add, 1 to change, 0 to remove, 0 as is",
    ]


def test_what_is_so_already_asks_for_nothing_and_no_one(world: World) -> None:
    world.model("x", min_replicas=2, max_replicas=2)
    world.aliases = [{"name": "chat", "rule": "weights", "targets": [{"model": "x", "weight": 1}]}]
    world.policies = [policy("balanced", builtin=True), policy("night", default=True)]

    done = world.apply(WHOLE)

    assert (0, []) == (done.exit_code, world.asked), done.output
    assert [line[:2] for line in done.stdout.splitlines()] == ["= ", "= ", "= ", "= ", "no"]
    assert 0 == world.apply(WHOLE, "--dry-run").exit_code


@pytest.mark.parametrize(
    ("models", "line"),
    [
        ("{x: 3, m-y: 1}", "= alias chat"),
        ("[x, y]", "~ alias chat: models x=3, y=1 → x=1, y=1"),
        ("[y, x], in_order: true", "~ alias chat: models x=3, y=1 → y, then x"),
    ],
)
def test_an_alias_is_compared_by_its_models_however_they_are_named(world: World, models: str, line: str) -> None:
    world.model("x")
    world.model("y")
    targets = [{"model": "x", "weight": 3}, {"model": "y", "weight": 1}]
    world.aliases = [{"name": "chat", "rule": "weights", "targets": targets}]

    done = world.apply(f"aliases: [{{name: chat, models: {models}}}]", "--yes")

    assert line == done.stdout.splitlines()[0]
    assert (line[0] == "~") == bool(world.asked)


@pytest.mark.parametrize(
    ("said", "line", "request_"),
    [
        (
            "replicas: 2",
            "replicas 1 → 2",
            {"min_replicas": 2, "max_replicas": 2, "spread_all": False, "node_selector": {}},
        ),
        (
            "min: 0, max: 0",
            "replicas 1 → 0 or more",
            {"min_replicas": 0, "max_replicas": 0, "spread_all": False, "node_selector": {}},
        ),
        (
            "max: 3",
            "replicas 1 → 1 to 3",
            {"min_replicas": 1, "max_replicas": 3, "spread_all": False, "node_selector": {}},
        ),
        (
            "replicas: all, selector: {gpu: '1'}",
            "selector none → gpu=1, replicas 1 → all",
            {"spread_all": True, "node_selector": {"gpu": "1"}},
        ),
    ],
)
def test_other_numbers_and_nodes_are_told_alone(world: World, said: str, line: str, request_: dict[str, Any]) -> None:
    world.model("x")

    done = world.apply(f"models: [{{source: simulated, name: x, {said}}}]", "--yes")

    assert f"~ model x: {line}" == done.stdout.splitlines()[0]
    assert [("PATCH", "/api/scheduling/x", request_)] == world.asked


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("capability: ['8.9', gfx942]", "capability none → 8.9, gfx942"),
        ("anti_affinity: front", "anti_affinity none → front"),
    ],
)
def test_what_devices_and_neighbours_a_model_takes_is_a_deploy_of_the_whole(world: World, said: str, line: str) -> None:
    world.model("x")

    done = world.apply(f"models: [{{source: simulated, name: x, {said}}}]", "--yes")

    assert f"~ model x: {line}" == done.stdout.splitlines()[0]
    assert ["POST"] == [method for method, _, _ in world.asked]


RULES: dict[str, Any] = {"max_surge": 1, "max_unavailable": 0, "progress_s": 14400.0, "scaling": {}}


@pytest.mark.parametrize(
    ("said", "line", "request_"),
    [
        ("max_surge: 3", "max_surge 1 → 3", {"max_surge": 3}),
        ("max_surge: 0, max_unavailable: 1", "max_surge 1 → 0, max_unavailable 0 → 1", None),
        ("progress: 60", "progress 14400 → 60", {"progress_s": 60.0}),
        (
            "scaling: {up_after_s: 10, tokens_per_s: 900}",
            "scaling none → up_after_s=10,tokens_per_s=900",
            {"scaling": {"up_after_s": 10.0, "tokens_per_s": 900.0}},
        ),
        (
            "max: 2, max_surge: 2",
            "replicas 1 → 1 to 2, max_surge 1 → 2",
            {"min_replicas": 1, "max_replicas": 2, "spread_all": False, "node_selector": {}, "max_surge": 2},
        ),
    ],
)
def test_other_rules_of_rollouts_and_figures_of_its_own_are_told_alone_and_once(
    world: World, said: str, line: str, request_: dict[str, Any] | None
) -> None:
    world.model("x")
    world.scheduled("x", **RULES)
    file = f"models: [{{source: simulated, name: x, {said}}}]"

    done = world.apply(file, "--yes")

    assert f"~ model x: {line}" == done.stdout.splitlines()[0]
    ((method, path, body),) = world.asked
    assert ("PATCH", "/api/scheduling/x") == (method, path)
    assert (request_ or {"max_surge": 0, "max_unavailable": 1}) == body

    world.schedulings[0] |= {name: value for name, value in body.items() if name in RULES}
    world.models[0]["spec"] |= {name: value for name, value in body.items() if name in SPEC}
    assert (0, []) == (world.apply(file).exit_code, world.asked)


def test_rules_that_the_file_does_not_say_are_the_defaults_and_a_gateway_that_tells_none_has_these(
    world: World,
) -> None:
    world.model("x")
    assert "nothing to do" in world.apply("models: [{source: simulated, name: x}]").stdout
    world.scheduled("x", max_surge=2, scaling={"spare": 0.5})

    done = world.apply("models: [{source: simulated, name: x}]", "--yes")

    assert "~ model x: max_surge 2 → 1, scaling spare=0.5 → none" == done.stdout.splitlines()[0]
    assert [("PATCH", "/api/scheduling/x", {"max_surge": 1, "scaling": {}})] == world.asked


def test_rules_come_before_the_revision_that_is_rolled_out_by_them_and_after_a_model_that_is_new(world: World) -> None:
    world.model("there")
    models = "[{source: simulated, name: NAME, context: 64, max_surge: 2}, {source: simulated, name: same}]"
    world.model("same")
    rules = {"max_surge": 2}

    assert 0 == world.apply(f"models: {models.replace('NAME', 'there')}", "--yes").exit_code
    assert [("PATCH", "/api/scheduling/there"), ("POST", "/api/models")] == [each[:2] for each in world.asked]
    assert rules == world.asked[0][2]

    assert 0 == world.apply(f"models: {models.replace('NAME', 'new')}", "--yes").exit_code
    assert [("POST", "/api/models"), ("PATCH", "/api/scheduling/new")] == [each[:2] for each in world.asked]
    assert rules == world.asked[1][2]


def test_a_layout_is_deployed_once_and_its_nodes_are_the_same_by_name_and_by_id(world: World) -> None:
    live = {"tensor_parallel": None, "gpus": ["n-1:0", "n-1:1"], "preferred_nodes": ["n-1"], "distributed": None}
    world.model("x", layout=live)
    world.nodes = [{"id": "n-1", "name": "rack"}]
    said = 'gpus: ["rack:0", "n-1:1"], preferred_nodes: [rack]'
    assert "nothing to do" in world.apply(f"models: [{{source: simulated, name: x, {said}}}]", "--yes").stdout
    assert [] == world.asked

    done = world.apply("models: [{source: simulated, name: x, tensor_parallel: 2}]", "--yes")

    said = "layout gpus=['rack:0', 'rack:1'],preferred_nodes=['rack'] → tensor_parallel=2"
    assert f"~ model x: {said}" == done.stdout.splitlines()[0]
    ((method, path, body),) = world.asked
    assert ("POST", "/api/models", {"tensor_parallel": 2}) == (method, path, body["spec"]["layout"])


def test_what_shapes_answers_is_a_deploy_of_the_whole(world: World) -> None:
    world.model("x", context_tokens=64, engine_args={"ms_per_token": 5}, policy="night")

    done = world.apply("models: [{source: simulated, name: x, concurrency: 4, replicas: 3}]", "--yes")

    said = "context 64 → 1024, concurrency 8 → 4, engine_args ms_per_token=5 → none, policy night → none"
    assert f"~ model x: {said}, replicas 1 → 3" == done.stdout.splitlines()[0]
    ((method, path, body),) = world.asked
    assert ("POST", "/api/models", {}, 3) == (method, path, body["spec"]["engine_args"], body["spec"]["min_replicas"])


@pytest.mark.parametrize(
    ("typed", "revision", "status", "tried"),
    [
        ("o/n-GGUF:Q8_0", COMMIT, 0, 0),
        (f"o/n-GGUF:Q8_0@{COMMIT}", COMMIT, 0, 0),
        (f"o/n-GGUF:Q8_0@{'f' * 40}", COMMIT, 2, 0),
        ("o/n-GGUF:Q4_K_M", COMMIT, 2, 0),
        ("o/other-GGUF:Q8_0", COMMIT, 2, 0),
        ("o/n-GGUF:Q8_0@main", COMMIT, 2, 1),
    ],
)
def test_a_source_of_a_hub_stays_at_its_commit_unless_another_is_meant(
    world: World, typed: str, revision: str, status: int, tried: int
) -> None:
    source = {"kind": "hf", "repository": "o/n-GGUF", "revision": revision, "file": "Q8_0"}
    world.model("x", source=source, engine="llama.cpp")

    done = world.apply(f"models: [{{source: '{typed}', name: x}}]", "--dry-run")

    assert status == done.exit_code, done.output
    assert [("POST", "/api/models?dry_run=true")] * tried == [each[:2] for each in world.asked]


def test_only_with_prune_goes_what_the_file_does_not_name_and_only_of_its_sections(world: World) -> None:
    world.model("x")
    world.model("by-hand")
    world.aliases = [{"name": "old", "rule": "order", "targets": [{"model": "by-hand", "weight": 1}]}]
    world.policies.append(policy("unused"))
    models = "models: [{source: simulated, name: x}]\n"

    assert (0, []) == (world.apply(models, "--yes").exit_code, world.asked)

    assert 0 == world.apply(models, "--prune", "--yes").exit_code
    assert [("DELETE", "/api/models/by-hand")] == [each[:2] for each in world.asked]

    done = world.apply(f"{models}aliases: []\npolicies: []", "--prune", "--yes")
    assert ["old", "by-hand", "unused"] == [each[1].rpartition("/")[2] for each in world.asked]
    assert "- alias old\n- model by-hand\n- policy unused\n" in done.stdout


def test_a_dry_run_changes_nothing_and_its_status_says_whether_it_would(world: World) -> None:
    done = world.apply(WHOLE, "--dry-run")
    assert (2, []) == (done.exit_code, world.asked)

    told = json.loads(world.apply(WHOLE, "--dry-run", "--json").stdout)
    assert (False, ["add", "change", "add", "add"]) == (told["applied"], [each["change"] for each in told["changes"]])


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_where_nobody_can_be_asked_yes_must_be_said(world: World, options: tuple[str, ...]) -> None:
    failure = world.apply(WHOLE, *options).exception
    assert isinstance(failure, Failure)
    assert (1, []) == (int(failure.exit), world.asked)
    assert "say --yes" in str(failure)


def answer_with(typed: str) -> Callable[[str], str]:
    return lambda question: typed


@pytest.mark.parametrize(("typed", "asked"), [("y", 4), ("n", 0), ("", 0)])
def test_at_a_terminal_a_person_is_asked(world: World, monkeypatch: pytest.MonkeyPatch, typed: str, asked: int) -> None:
    monkeypatch.setattr("weft_cli.commands.apply.somebody_is_there", lambda: True)
    monkeypatch.setattr("builtins.input", answer_with(typed))
    assert bool(asked) == (world.apply(WHOLE).exception is None)
    assert asked == len(world.asked)


def test_what_the_mesh_refuses_names_the_thing_and_nothing_behind_it_is_asked(world: World) -> None:
    world.fake.answers["POST", "/api/models"] = (422, {"detail": "there is no policy day"})
    failure = world.apply(WHOLE, "--yes").exception
    assert isinstance(failure, Failure)
    assert "model x: there is no policy day" == str(failure)
    assert ("POST", "/api/models") == world.asked[-1][:2]


def test_it_waits_for_those_that_have_a_minimum(world: World) -> None:
    world.model("x")
    world.model("asleep", min_replicas=0)
    models = "models: [{source: simulated, name: x}, {source: simulated, name: asleep, min: 0}]"
    failure = world.apply(models, "--wait", "0.1").exception
    assert isinstance(failure, Failure)
    assert "x is not ready after" in str(failure)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("[]", ["it holds no fields: want models, aliases or policies"]),
        ("a: [", ["it is no YAML"]),
        ("model: []", ["model: is no field here"]),
        ("models: [{name: x}]", ["models[0].source: is missing"]),
        (
            "models: [{source: tiny, context: many, concurrency: 0}, {source: tiny, replica: 1}]",
            [
                "models[0].context: want a valid integer",
                "models[0].concurrency: want greater than or equal to 1",
                "models[1].replica: is no field here",
            ],
        ),
        ("models: [{source: tiny, selector: {gpu: yes}}]", ["models[0].selector.gpu: want a text; put it in quotes"]),
        ("models: [{source: tiny, capability: ['9']}]", ["models[0].capability[0]: want a compute capability such"]),
        ("models: [{source: tiny, replicas: some}]", ["models[0].replicas: want"]),
        ("models: [{source: tiny, replicas: 1, max: 2}]", ["models[0].replicas: goes with neither min nor max"]),
        ("models: [{source: tiny, replicas: all, min: 2}]", ["models[0].replicas: goes with neither"]),
        (
            "models: [{source: tiny, max_surge: -1, progress: soon, scaling: {spare: 2, sparse: 1}}]",
            [
                "models[0].max_surge: want greater than or equal to 0",
                "models[0].progress: want a valid number",
                "models[0].scaling.spare: want less than or equal to 0.95",
                "models[0].scaling.sparse: is no field here",
            ],
        ),
        ("models: [{source: tiny, max_surge: 0}]", ["models[0].max_surge: is 0, and so is max_unavailable"]),
        ("models: [{source: tiny, min: 3, max: 2}]", ["models[0].max: 2 is below min 3"]),
        ("models: [{source: tiny, name: a}, {source: tiny, name: a}]", ["models[1].name: a is the name of models[0]"]),
        ("models: [{source: tiny}, {source: tiny}]", ["models: two are called tiny"]),
        ("models: [{source: 'ftp://x/y'}]", ["models[0]: ftp://x/y is no source"]),
        ("models: [{source: tiny, loras: [x]}]", ["models[0]: --lora x: want NAME=PATH"]),
        (
            "models: [{source: tiny, name: a}]\naliases: [{name: a, models: [b]}]",
            ["aliases[0].name: a is the name of models[0], too"],
        ),
        ("aliases: [{name: a, models: []}]", ["aliases[0].models"]),
        ("aliases: [{name: a, models: {b: 0}}]", ["aliases[0].models"]),
        ("policies: [{name: p, weights: {idel: 1}}]", ["policies[0].weights.idel: is no field of a policy"]),
        ("policies: [7]", ["policies[0]: it holds no fields"]),
        ("policies: [{name: spread, weights: {idle: 1}}]", ["policies[0].name: spread is one that Weft comes with"]),
        (
            "policies: [{name: p, weights: {idle: 1}}, {name: p, weights: {files: 1}}]",
            ["policies[1].name: p is the name of policies[0], too"],
        ),
    ],
)
def test_each_bad_field_has_a_line_with_its_path_and_nothing_is_asked(
    world: World, text: str, lines: list[str]
) -> None:
    failure = world.apply(text, "--yes").exception
    assert isinstance(failure, Failure)
    assert (1, []) == (int(failure.exit), world.asked)
    said = str(failure).splitlines()
    assert len(lines) == len(said), said
    for line, found in zip(lines, said, strict=True):
        assert found.startswith(f"{world.file}: {line}")


@pytest.mark.parametrize("prune", [False, True])
def test_what_is_named_and_is_nowhere_is_said_before_anything_changes(world: World, prune: bool) -> None:
    world.model("there")
    world.policies.append(policy("told"))
    text = """
models: [{source: simulated, name: x, policy: told}, {source: simulated, name: y, policy: day}]
aliases: [{name: a, models: [x, there, nobody]}, {name: b, models: [m-there]}]
policies: []
default_policy: night
"""
    failure = world.apply(text, "--yes", *(["--prune"] if prune else [])).exception
    assert isinstance(failure, Failure)
    policies = "balanced" if prune else "balanced, told"
    expected = [
        f"models[1].policy: there is no policy day; there is: {policies}",
        f"default_policy: there is no policy night; there is: {policies}",
        "aliases[0].models: there is no model nobody, here or in the mesh",
    ]
    if prune:  # what goes can't be named
        expected.insert(0, f"models[0].policy: there is no policy told; there is: {policies}")
        expected.insert(-1, "aliases[0].models: there is no model there, here or in the mesh")
        expected.append("aliases[1].models: there is no model m-there, here or in the mesh")
    assert [f"{world.file}: {line}" for line in expected] == str(failure).splitlines()
    assert [] == world.asked


def test_the_page_s_example_is_a_file_with_arguments_that_there_are() -> None:
    page = (Path(__file__).parents[1] / "README.md").read_text()
    section = page[page.index("## `weft apply`") :]
    block = re.search(r"```yaml\n(.*?)```", section, re.DOTALL)
    assert block is not None

    file = fleet_file_of(document(block[1]))

    assert [(1, 4), (1, 1)] == [
        (each.numbers["min_replicas"], each.numbers["max_replicas"]) for each in file.models or ()
    ]
    assert all(name in BUILTIN["llama.cpp"].arguments for each in file.models or () for name in each.engine_args)
    assert ["night"] == [each.name for each in file.told]


def test_a_file_that_is_not_there_is_said(world: World) -> None:
    failure = CliRunner().invoke(app, ["apply", str(world.file)]).exception
    assert isinstance(failure, Failure)
    assert "can't be read" in str(failure)


def test_a_fault_names_no_types_of_ours() -> None:
    with pytest.raises(FleetFault) as told:
        fleet_file_of({"aliases": [{"name": "a", "models": 7}], "models": [{"source": "tiny", "replicas": -1}]})
    assert not re.search(r"constrained|literal\[|pydantic", str(told.value))

"""`weft plan`: a table or one JSON document, exit statuses, and what is wrong with a file in one sentence."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import weft_tiny
from weft_cli import main
from weft_placement.plan.reading import GPU, NODE, ROOT, RUN
from weft_placement.plan.reading_model import MODEL
from weft_testing.fake_gateway import FakeGateway

Weft = Callable[..., tuple[int, str, str]]
FILE = """
nodes:
  - {id: a, ram: 64GiB, gpus: [{index: 2, vram: 24GiB}]}
  - {id: b, ram: 32GiB}
models:
  - {name: small, engine: llama.cpp, claim: {vram: 10GiB}}
  - {name: part, engine: llama.cpp, weights: 20GiB, layers: 20, kv_bytes: 20000}
"""


@pytest.fixture
def weft(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Weft:
    """Runs `weft plan` as a process would, where no mesh runs; the exit status, stdout and stderr."""
    monkeypatch.setenv("WEFT_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["weft", "plan", *words])
        status = main.main()
        out, err = capsys.readouterr()
        return status, out, err

    return run


def test_a_table_names_rung_node_claims_and_why_better_rungs_were_passed_over(weft: Weft) -> None:
    Path("plan.yaml").write_text(FILE)
    status, out, err = weft("plan.yaml")
    assert (0, "") == (status, err)
    small, part = (line for line in out.splitlines() if "one-device" in line or "partial-offload" in line)
    assert "gpu 2: 10.0 GiB" in small
    assert "layers)" in part
    assert "memory: " in part
    assert "part 0: passed over: one device: the best node has no device with " in out


def test_a_replica_without_a_place_makes_the_exit_status_1_and_all_are_shown(weft: Weft) -> None:
    Path("plan.yaml").write_text(FILE + "  - {name: huge, claim: {vram: 1TiB}}\n")
    status, out, err = weft("plan.yaml")
    assert 1 == status
    assert "huge 0 has no place: needs 1.0 TiB, 6.8 GiB there for it" in out or "huge 0 has no place" in out
    assert err.startswith("weft: 1 of 3 replicas has no place: huge 0: no node can take it; the nearest, a, ")
    status, out, err = weft("plan.yaml", "--json")
    assert 1 == status
    assert ["small", "part"] == [each["model"] for each in json.loads(out)["placements"]]
    assert ["huge"] == [each["model"] for each in json.loads(out)["refused"]]
    assert 1 == json.loads(err)["error"]["exit"]


def test_a_policy_is_laid_over_all_models(weft: Weft) -> None:
    Path("plan.yaml").write_text("nodes: [{id: a, ram: 8GiB}]\nmodels: [{name: m, claim: {ram: 1GiB}}]\n")
    for given, expected in (((), "balanced"), (("--policy", "spread"), "spread")):
        status, out, _ = weft("plan.yaml", "--json", *given)
        assert 0 == status
        assert expected == json.loads(out)["placements"][0]["policy"]
    assert (2, "", "weft: --policy best: want one of balanced, binpack, spread\n") == weft(
        "plan.yaml", "--policy", "best"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "models:\n- {name: m, claim: {vram: 1}}\n- {name: n, heads: 0}\n",
            "models[1].heads: want a whole number above 0",
        ),
        ("nodes: [\n", "line 2: it is no YAML: "),
        ("nodes: {a: b}\n", "nodes: want a list"),
        ("x: \x00", "it is no YAML: "),
        ("models: [{name: m, path: none.gguf}]", "models[0].path: none.gguf can't be read: No such file or directory"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_sentence_with_its_path_and_status_2(
    weft: Weft, text: str, expected: str
) -> None:
    Path("plan.yaml").write_text(text)
    status, out, err = weft("plan.yaml")
    assert (2, "") == (status, out)
    assert err.startswith(f"weft: plan.yaml: {expected}")
    assert 1 == err.count("\n")


def test_a_file_that_is_not_there_is_wrong_usage(weft: Weft) -> None:
    assert (2, "", "weft: none.yaml can't be read: No such file or directory\n") == weft("none.yaml")


def test_a_path_beside_the_file_tells_what_a_model_needs(weft: Weft) -> None:
    folder = Path("deep/model")
    folder.mkdir(parents=True)
    header = json.dumps({"w": {"dtype": "BF16", "shape": [1000], "data_offsets": [0, 2000]}}).encode()
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(2000))
    config = {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 64, "architectures": ["Toy"]}
    (folder / "config.json").write_text(json.dumps({**config, "torch_dtype": "bfloat16"}))
    Path("deep/plan.yaml").write_text("nodes: [{id: a, gpus: [{vram: 8GiB}]}]\nmodels: [{name: m, path: model}]\n")
    status, out, _ = weft("deep/plan.yaml", "--json")
    assert 0 == status
    cache = 2 * 2 * 4 * 16 * 2 * 1024 * 8
    (member,) = json.loads(out)["placements"][0]["members"]
    assert {"0": 2000 + 100 + cache + (2355 << 20)} == member["gpus"]
    (folder / "config.json").write_text("[")
    status, _, err = weft("deep/plan.yaml")
    assert 2 == status
    assert err.startswith("weft: deep/plan.yaml: models[0].path: deep/model/config.json is no JSON")


def test_the_page_names_every_field_and_its_file_is_one(weft: Weft) -> None:
    page = (Path(__file__).parents[1] / "README.md").read_text()
    section = page.partition("## `weft plan`")[2].partition("\n## ")[0]
    for name in {*ROOT, *NODE, *GPU, *RUN, *MODEL}:
        assert f"{name}:" in section or f"`{name}`" in section, name
    text = (
        section.partition("```yaml\n")[2].partition("```")[0].replace("path: models/small.gguf", "claim: {vram: 1GiB}")
    )
    Path("fleet.yaml").write_text(text)
    status, out, _ = weft("fleet.yaml", "--json")
    assert 0 == status
    assert ["coder", "coder", "small", "big"] == [each["model"] for each in json.loads(out)["placements"]]


def test_a_file_is_needed_where_no_mesh_is_planned_on(weft: Weft) -> None:
    status, _, err = weft()
    assert (2, True) == (status, "want a FILE of machines and models, or --live" in err)


def test_a_files_own_policy_may_be_laid_over_all_models(weft: Weft) -> None:
    Path("plan.yaml").write_text(FILE + "policies: [{name: mine, weights: {binpack: 1}}]\n")
    status, out, _ = weft("plan.yaml", "--policy", "mine", "--json")
    assert (0, {"mine"}) == (status, {each["policy"] for each in json.loads(out)["placements"]})
    status, _, err = weft("plan.yaml", "--policy", "yours")
    assert (2, True) == (status, "--policy yours: want one of balanced, binpack, spread, mine" in err)


PLACED = {
    "model": "m",
    "replica": 0,
    "rung": "one-device",
    "policy": "mine",
    "score": 0.5,
    "scores": {"binpack": 0.5},
    "members": [{"node": "a", "rank": 0, "ram": 0, "gpus": {"1": 10 << 30}}],
}
REFUSED = {"model": "n", "replica": 0, "rungs": {}, "nodes": {"a": "is full"}, "need": 2, "available": 1}


def test_a_plan_on_a_mesh_sends_the_file_with_its_headers_and_prints_what_the_gateway_says(
    weft: Weft, fake: FakeGateway, tmp_path: Path
) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(weft_tiny.gguf_path().read_bytes())
    Path("plan.yaml").write_text(f"models: [{{name: m, path: {path.name}}}]\n")
    placed = {**PLACED, "layers": None, "passed_over": []}
    answer = {"position": 7, "placements": [placed], "refused": [{**REFUSED, "reason": "no node can take it"}]}
    fake.answers["POST", "/api/plans"] = (200, answer)

    status, out, err = weft("plan.yaml", "--live", "--policy", "mine", "--url", fake.url, "--json")

    assert {"placements": [{**PLACED, "evicts": []}], "refused": [REFUSED]} == json.loads(out)
    assert (1, True) == (status, "1 of 2 replicas has no place: n 0: no node can take it" in err)
    (_, _, body) = fake.asked[-1]
    assert {"models": [{"name": "m", "path": "m.gguf"}]} == body["document"]
    assert ("mine", "gguf") == (body["policy"], body["weights"]["m.gguf"]["format"])


def test_without_a_file_the_meshs_own_are_planned_and_that_there_are_none_is_said(
    weft: Weft, fake: FakeGateway
) -> None:
    fake.answers["POST", "/api/plans"] = (200, {"position": 7, "placements": [], "refused": []})
    assert (0, "nothing is to be placed, at log position 7\n", "") == weft("--live", "--url", fake.url)
    assert {} == fake.asked[-1][2]


def test_what_the_gateway_finds_wrong_with_a_file_is_told_with_the_files_name(weft: Weft, fake: FakeGateway) -> None:
    Path("plan.yaml").write_text("nodes: []\nmodels: [{name: m, path: none.gguf}]\n")
    status, _, err = weft("plan.yaml", "--live", "--url", fake.url)
    assert (2, True) == (status, "plan.yaml: models[0].path: " in err)
    Path("plan.yaml").write_text("nodes: [{id: a}]\n")
    fake.answers["POST", "/api/plans"] = (400, {"detail": "nodes: is of the mesh"})
    status, _, err = weft("plan.yaml", "--live", "--url", fake.url)
    assert (2, True) == (status, "plan.yaml: nodes: is of the mesh" in err)


def test_a_policy_that_the_mesh_does_not_know_is_told_as_the_options_fault(weft: Weft, fake: FakeGateway) -> None:
    Path("plan.yaml").write_text("models: []\n")
    fake.answers["POST", "/api/plans"] = (400, {"detail": "policy: mine is none: want one of balanced"})
    status, _, err = weft("plan.yaml", "--live", "--policy", "mine", "--url", fake.url)
    assert (2, "weft: --policy: mine is none: want one of balanced\n") == (status, err)

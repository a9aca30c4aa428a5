"""What `weft deploy` makes of a source, and how it tells its progress."""

from pathlib import Path

import pytest
from typer.testing import CliRunner
from weft_api import DryRun, ReplicaExplanation
from weft_cli.app import app
from weft_cli.commands.dry_run import alike, beginning
from weft_cli.commands.found_source import found_in_words
from weft_cli.commands.models import DeployOptions, spec
from weft_cli.commands.progress import phase
from weft_client import api
from weft_client.failure import Failure
from weft_client.units import size
from weft_placement import BALANCED
from weft_testing.fake_gateway import FakeGateway


def row(state: str, node: str = "", reason: str = "") -> api.ReplicaRow:
    return api.ReplicaRow(
        id="m-1-1", model="m", revision=1, digest="d", state=state, node=node, engine="", reason=reason
    )


def test_a_replica_is_placed_then_loads_on_its_node_then_answers() -> None:
    assert "placing" == phase([], 0, 0)
    assert "placing" == phase([row("added")], 0, 1)
    assert "loading on a" == phase([row("placed", "a")], 0, 1)
    assert "loading on a, b" == phase([row("loading", "a"), row("loading", "b"), row("loading", "a")], 0, 3)
    assert "1 of 2 replicas answer" == phase([row("ready", "a"), row("loading", "b")], 1, 2)


def test_a_start_after_a_failed_one_says_what_failed() -> None:
    again = row("loading", "a", "it starts again after: no memory")
    assert "loading on a: it starts again after: no memory" == phase([again], 0, 1)


def test_a_file_is_for_llama_cpp_and_a_folder_for_vllm(tmp_path: Path) -> None:
    file = tmp_path / "m.gguf"
    file.touch()
    assert ["llama.cpp", "vllm"] == [spec(str(each), DeployOptions())["engine"] for each in (file, tmp_path)]


def test_a_server_elsewhere_is_an_engine_with_arguments() -> None:
    made = spec("openai:http://10.0.0.5:11434/v1#llama3.2", DeployOptions(engine_args=("health_s=60",)))
    assert {
        "source": {"kind": "simulated"},
        "engine": "openai",
        "engine_args": {"base_url": "http://10.0.0.5:11434/v1", "model": "llama3.2", "health_s": 60},
    } == made


EXPLAINED: ReplicaExplanation = {
    "replica": "m-new-1",
    "model": "m",
    "position": 1,
    "policy": BALANCED.text,
    "outcome": "it would go to a",
    "nodes": [],
    "receipt": None,
    "recomputed": True,
    "refusals": {},
    "last_end": None,
    "troubles": [],
}
PLAN: DryRun = {
    "wanted": 1,
    "staying": 0,
    "placed": 1,
    "fits": True,
    "architecture": "",
    "weight_bytes": 0,
    "files": [],
    "source": "simulated",
    "replicas": [EXPLAINED],
}


def test_a_dry_run_tells_replicas_that_come_out_the_same_together() -> None:
    def explained(number: int, outcome: str) -> ReplicaExplanation:
        return {**EXPLAINED, "replica": f"m-new-{number}", "outcome": outcome}

    one, two = explained(1, "it would go to a"), explained(2, "it would go to a")
    three, four = explained(3, "no node can take it"), explained(4, "it would go to a")
    assert [[one, two], [three], [four]] == alike([one, two, three, four])
    assert [] == alike([])


def test_a_made_name_is_said_and_asked_for(fake: FakeGateway, tmp_path: Path) -> None:
    fake.answers["POST", "/api/models"] = (201, {"revision": "1"})
    words = ["deploy", str(tmp_path / "My Model v2.gguf"), "--wait", "0", "--url", fake.url]
    said = CliRunner().invoke(app, words).stdout
    assert "'My Model v2.gguf' can't be a model's name, so it is called My-Model-v2" in said
    assert "My-Model-v2" == fake.asked[-1][2]["name"]


COMMIT = "1" * 40


def test_a_repository_is_deployed_by_its_name_and_what_a_worker_found_there_is_told(fake: FakeGateway) -> None:
    found = {"files": "3", "bytes": str(3 << 30), "licence": "apache-2.0", "source": f"hf:Qwen/Qwen3-0.6B@{COMMIT}"}
    fake.answers["POST", "/api/models"] = (201, {"revision": "1", **found})
    said = CliRunner().invoke(app, ["deploy", "Qwen/Qwen3-0.6B", "--wait", "0", "--url", fake.url]).stdout
    asked = fake.asked[-1][2]
    source = {"kind": "hf", "repository": "Qwen/Qwen3-0.6B", "revision": "", "file": ""}
    assert {"name": "Qwen/Qwen3-0.6B", "spec": {"source": source, "engine": "vllm"}} == asked
    assert f"hf:Qwen/Qwen3-0.6B@{COMMIT}: 3 files of {size(3 << 30)}, licence apache-2.0" in said
    assert "can't be a model's name" not in said


def test_a_web_address_whose_file_no_model_can_be_called_after_gets_a_name_and_says_so(fake: FakeGateway) -> None:
    fake.answers["POST", "/api/models"] = (201, {"revision": "1"})
    words = ["deploy", "https://models.example/My%20Model.gguf", "--wait", "0", "--url", fake.url]
    said = CliRunner().invoke(app, words).stdout
    assert "'My Model.gguf' can't be a model's name, so it is called My-Model" in said


@pytest.mark.parametrize("source", ["ftp://models.example/m.gguf", "ollama:llama3", "s3://B/m.gguf", "hf:a/b@"])
def test_what_names_no_source_is_refused_before_anybody_is_asked(fake: FakeGateway, source: str) -> None:
    with pytest.raises(Failure, match=source):
        spec(source, DeployOptions())
    assert [] == fake.asked


def test_what_was_found_is_one_line_without_what_commands_a_terminal() -> None:
    assert "" == found_in_words({"request": "q", "revision": "1"})
    bare = found_in_words({"request": "q", "revision": "1", "files": "1", "bytes": "1000"})
    assert f"1 file of {size(1000)}, no licence told" == bare
    gate = found_in_words({"request": "q", "revision": "1", "files": "1", "bytes": "1000", "gated": "yes"})
    assert f"{bare}, gated: its terms were accepted" == gate
    odd = found_in_words({"request": "q", "revision": "1", "files": "1", "bytes": "1", "licence": "\x1b[2Jmit"})
    assert "\x1b" not in odd


def test_loras_are_named_with_their_paths_and_scales() -> None:
    made = spec("tiny", DeployOptions(loras=("style=/l/a.gguf", "tone:0.5=/l/b=c.gguf")))
    assert [
        {"name": "style", "path": "/l/a.gguf", "scale": 1.0},
        {"name": "tone", "path": "/l/b=c.gguf", "scale": 0.5},
    ] == made["adapters"]
    for wrong in ("style", "=x", "style=", "style:much=/l/a.gguf"):
        with pytest.raises(Failure, match=f"--lora {wrong}: want NAME=PATH or NAME:SCALE=PATH"):
            spec("tiny", DeployOptions(loras=(wrong,)))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2", 2),
        ("true", True),
        ("[1, null]", [1, None]),
        ('{"image": 2}', {"image": 2}),
        ("words", "words"),
        ('"quoted"', '"quoted"'),
        ("[INST] {x}", "[INST] {x}"),
        ("null", "null"),
    ],
)
def test_an_engine_argument_is_json_where_it_reads_as_such(fake: FakeGateway, text: str, value: object) -> None:
    fake.answers["POST", "/api/models"] = (201, {"revision": "1"})
    words = ["deploy", "simulated", "--name", "m", "--engine-arg", f"a={text}", "--wait", "0", "--url", fake.url]
    CliRunner().invoke(app, words)
    assert {"a": value} == fake.asked[-1][2]["spec"]["engine_args"]


@pytest.mark.parametrize(
    ("detail", "param", "said"),
    [
        (
            "context_tokens 9 is more than the 8 that the model was made for",
            None,
            "--context 9 is more than the 8 that",
        ),
        ("`spec.context_tokens` does not fit: no.", "spec.context_tokens", "--context does not fit: no."),
        ("`spec.concurrency` does not fit: no.", "spec.concurrency", "--concurrency does not fit: no."),
        ("`spec.min_replicas` does not fit: no.", "spec.min_replicas", "--replicas does not fit: no."),
        ("engine_args.memory_bytes is 'x': want a number", None, "--engine-arg memory_bytes is 'x': want a number"),
        ("`spec.engine_args.rate` does not fit: no.", None, "--engine-arg rate does not fit: no."),
        ("`name` does not fit: string should match", "name", "--name 'odd name': want a letter or digit, then"),
        ("/a/context_tokens.gguf lacks concurrency", None, "/a/context_tokens.gguf lacks concurrency"),
    ],
)
def test_what_is_refused_names_what_was_typed(fake: FakeGateway, detail: str, param: str | None, said: str) -> None:
    fake.answers["POST", "/api/models"] = (422, {"detail": detail, **({"param": param} if param else {})})
    refused = CliRunner().invoke(app, ["deploy", "tiny", "--name", "odd name", "--url", fake.url])
    assert str(refused.exception).startswith(said)


def test_what_is_fixed_of_a_layout_stands_in_the_spec_and_nothing_else(fake: FakeGateway) -> None:
    words = "--tensor-parallel 2 --pipeline-parallel 3 --gpu a:0 --gpu b:1 --gpus-per-replica 6 --prefer-node b"
    fake.answers["POST", "/api/models"] = (422, {"detail": "layout.gpus[1]: b has no gpu 1: it has 0"})
    typed = ["deploy", "simulated", "--url", fake.url]
    refused = CliRunner().invoke(app, [*typed, *words.split(), "--distributed", "--no-cpu-offload"])
    assert {
        "tensor_parallel": 2,
        "pipeline_parallel": 3,
        "gpus": ["a:0", "b:1"],
        "gpus_per_replica": 6,
        "preferred_nodes": ["b"],
        "distributed": True,
        "cpu_offload": False,
    } == fake.asked[-1][2]["spec"]["layout"]
    assert "--gpu[1]: b has no gpu 1: it has 0" == str(refused.exception)
    CliRunner().invoke(app, [*typed, "--no-distributed"])
    assert {"distributed": False} == fake.asked[-1][2]["spec"]["layout"]
    CliRunner().invoke(app, typed)
    assert "layout" not in fake.asked[-1][2]["spec"]


def test_whether_there_is_an_engine_is_the_servers_to_say(fake: FakeGateway) -> None:
    fake.answers["POST", "/api/models"] = (400, {"detail": "`spec.engine` is 'echo'; no.", "param": "spec.engine"})
    refused = CliRunner().invoke(app, ["deploy", "tiny", "--engine", "echo", "--url", fake.url])
    assert "echo" == fake.asked[-1][2]["spec"]["engine"]
    assert "--engine is 'echo'; no." == str(refused.exception)


def test_a_dry_run_says_how_many_of_all_replicas_have_a_place() -> None:
    def dry_run(wanted: int, staying: int, placed: int) -> str:
        fits = staying + placed >= wanted
        plan: DryRun = {**PLAN, "wanted": wanted, "staying": staying, "placed": placed, "fits": fits}
        return beginning("m", "1", plan)

    assert dry_run(500, 1, 3).endswith("with 500 replicas: 1 stays as it is, 3 of 499 new ones have a place")
    assert dry_run(500, 0, 0).endswith("with 500 replicas: none of 500 new ones have a place")
    assert dry_run(1, 1, 0).endswith("with 1 replica: 1 stays as it is")


def test_a_dry_run_is_the_gateways_answer_and_fails_where_a_replica_has_no_place(fake: FakeGateway) -> None:
    # given a gateway that has a place for one of two
    refused: ReplicaExplanation = {**EXPLAINED, "replica": "m-new-2", "outcome": "no node can take it"}
    plan: DryRun = {**PLAN, "wanted": 2, "fits": False, "replicas": [EXPLAINED, refused]}
    fake.answers["POST", "/api/models?dry_run=true"] = (200, {"revision": "3", "request": "q", "plan": plan})
    # when
    words = ["deploy", "simulated", "--name", "m", "--replicas", "2", "--dry-run", "--url", fake.url]
    said = CliRunner().invoke(app, words)
    # then
    assert "dry run: m would be revision 3 with 2 replicas: 1 of 2 new ones has a place" in said.stdout
    assert "only 1 of the 2 replicas of m would fit: no node can take it" in str(said.exception)


def test_a_gateway_that_does_not_say_where_replicas_would_go_is_named_as_older(fake: FakeGateway) -> None:
    fake.answers["POST", "/api/models?dry_run=true"] = (200, {"revision": "3", "request": "q"})
    words = ["deploy", "simulated", "--name", "m", "--dry-run", "--url", fake.url]
    assert "the gateway is of an earlier version" in str(CliRunner().invoke(app, words).exception)


@pytest.mark.parametrize(
    ("given", "least", "most"),
    [
        (DeployOptions(replicas="3"), 3, 3),
        (DeployOptions(replicas="0"), 0, 1),
        (DeployOptions(least=0, most=4), 0, 4),
        (DeployOptions(least=2), 2, 2),
        (DeployOptions(least=0), 0, 1),
        (DeployOptions(most=4), 1, 4),
        (DeployOptions(most=0), 1, 0),
    ],
)
def test_the_least_and_the_most_copies_are_the_specs_bounds(given: DeployOptions, least: int, most: int) -> None:
    made = spec("simulated", given)
    assert (least, most) == (made["min_replicas"], made["max_replicas"])


def test_one_copy_on_each_node_is_asked_for_by_a_word_and_no_number_goes_with_it() -> None:
    made = spec("simulated", DeployOptions(replicas="all"))
    assert (True, False) == (made["spread_all"], "min_replicas" in made)
    with pytest.raises(Failure, match="give the one or the others"):
        spec("simulated", DeployOptions(replicas="all", least=2))


@pytest.mark.parametrize("wrong", ["-1", "many", "1.5", "", "9999999999", "²"])
def test_a_number_of_copies_that_is_none_is_refused_with_what_would_be_right(wrong: str) -> None:
    with pytest.raises(Failure, match="want a whole number from 0 on, or all") as refused:
        spec("simulated", DeployOptions(replicas=wrong))
    assert 2 == refused.value.exit


def test_without_a_word_of_copies_the_spec_has_none() -> None:
    assert "min_replicas" not in spec("simulated", DeployOptions())


def test_one_number_of_copies_and_bounds_are_not_given_together() -> None:
    with pytest.raises(Failure, match="--replicas N is --min N --max N"):
        spec("simulated", DeployOptions(replicas="2", most=3))
    assert 2 == CliRunner().invoke(app, ["deploy", "simulated", "--min", "-1"]).exit_code


def test_bounds_that_do_not_fit_are_named_as_they_were_given(fake: FakeGateway) -> None:
    fake.answers["POST", "/api/models"] = (400, {"detail": "`spec.min_replicas` is 4, above `spec.max_replicas` (2)."})
    words = ["deploy", "tiny", "--min", "4", "--max", "2", "--url", fake.url]
    assert str(CliRunner().invoke(app, words).exception).startswith("--min is 4, above --max (2)")


def test_where_copies_may_run_is_typed_as_labels_capabilities_and_an_anti_affinity() -> None:
    given = DeployOptions(selector="zone=a, !old, rack=", capability=("8.9", "gfx942"), anti_affinity="front")
    made = spec("simulated", given)
    assert {"zone": "a", "!old": "", "rack": ""} == made["selector"]
    assert (["8.9", "gfx942"], "front") == (made["capability"], made["anti_affinity"])
    assert not {"selector", "capability", "anti_affinity"} & spec("simulated", DeployOptions()).keys()


@pytest.mark.parametrize("wrong", ["", "zone", "!old=1", "=a", "!", "zone=a,,b=c"])
def test_a_selector_that_can_not_be_meant_is_refused_with_what_is_right(wrong: str) -> None:
    with pytest.raises(Failure, match="want KEY=VALUE for a label that nodes bear, !KEY for none"):
        spec("simulated", DeployOptions(selector=wrong))


def test_what_is_typed_of_places_reaches_the_gateway(fake: FakeGateway) -> None:
    fake.answers["POST", "/api/models?dry_run=true"] = (400, {"error": {"message": "spec.capability is wrong"}})
    words = ["deploy", "simulated", "--name", "m", "--dry-run", "--url", fake.url]
    done = CliRunner().invoke(app, [*words, "--selector", "!old", "--capability", "8.9", "--anti-affinity", "front"])
    assert "--capability is wrong" in str(done.exception)
    asked = next(body for method, _, body in fake.asked if method == "POST")
    assert ({"!old": ""}, ["8.9"], "front") == tuple(
        asked["spec"][name] for name in ("selector", "capability", "anti_affinity")
    )

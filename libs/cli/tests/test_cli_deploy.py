"""What `weft deploy` makes of a source, and how it tells its progress."""

from pathlib import Path

import pytest
from typer.testing import CliRunner
from weft_cli.app import app
from weft_cli.commands.dry_run import _alike, beginning
from weft_cli.commands.found_source import found_in_words
from weft_cli.commands.models import DeployOptions, spec
from weft_cli.commands.progress import phase
from weft_client import api
from weft_client.failure import Failure
from weft_client.units import size
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import NodeId, ReplicaId
from weft_placement import DryRun, NodeAnswer
from weft_placement.explain import Explanation
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


def test_a_dry_run_tells_replicas_that_come_out_the_same_together() -> None:
    def explained(number: int, outcome: str) -> Explanation:
        return Explanation(ReplicaId(f"m-new-{number}"), "m", 1, "", outcome, (), None)

    one, two = explained(1, "it would go to a"), explained(2, "it would go to a")
    three, four = explained(3, "no node can take it"), explained(4, "it would go to a")
    assert [[one, two], [three], [four]] == _alike([one, two, three, four])
    assert [] == _alike([])


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


def test_whether_there_is_an_engine_is_the_servers_to_say(fake: FakeGateway) -> None:
    fake.answers["POST", "/api/models"] = (400, {"detail": "`spec.engine` is 'echo'; no.", "param": "spec.engine"})
    refused = CliRunner().invoke(app, ["deploy", "tiny", "--engine", "echo", "--url", fake.url])
    assert "echo" == fake.asked[-1][2]["spec"]["engine"]
    assert "--engine is 'echo'; no." == str(refused.exception)


def test_a_dry_run_says_how_many_of_all_replicas_have_a_place() -> None:
    def dry_run(wanted: int, staying: int, placed: int) -> str:
        answer = NodeAnswer(NodeId("n"), "a", None, "one device", (0,), 1.0, {}, chosen=True)
        there = [Explanation(ReplicaId(f"m-{n}"), "m", 1, "", "a", (answer,), None) for n in range(placed)]
        return beginning(
            "m", DryRun(ModelSpec(source=SimulatedSource(), engine="simulated"), 1, wanted, staying, tuple(there))
        )

    assert dry_run(500, 1, 3).endswith("with 500 replicas: 1 stays as it is, 3 of 499 new ones have a place")
    assert dry_run(500, 0, 0).endswith("with 500 replicas: none of 500 new ones have a place")
    assert dry_run(1, 1, 0).endswith("with 1 replica: 1 stays as it is")

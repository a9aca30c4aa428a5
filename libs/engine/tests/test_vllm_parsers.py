"""Thoughts and calls of tools, told apart by vLLM's own parsers in the engine host: real vLLM, a model with scripts."""

import json
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import SessionClient
from weft_testing.scripted_model import THINKS, write_scripted_model

pytestmark = pytest.mark.slow

StartHost = Callable[..., AbstractAsyncContextManager[Any]]
Ask = Callable[..., Any]

IMPORTS_S = 300.0
"""vLLM's import, on a machine that others use."""
GREEDY = pb.Sampling(temperature=0)
CITY = {"type": "object", "properties": {"city": {"const": "Paris"}}, "required": ["city"]}
WEATHER = {"name": "weather", "description": "of a city", "parameters": CITY}
TIME = {"name": "time", "parameters": {"type": "object"}}
BOTH = (
    '{"name": "weather", "arguments": {"city": "Paris"}}',
    '{"name": "time", "arguments": {}}',
)


def schema_of(*functions: dict[str, Any]) -> str:
    """Fits a call of any, as gateways write it."""
    calls = [
        {
            "type": "object",
            "properties": {"name": {"const": function["name"]}, "arguments": function["parameters"]},
            "required": ["name", "arguments"],
        }
        for function in functions
    ]
    return json.dumps({"anyOf": calls})


AUTO = pb.Constraint(json_schema=schema_of(WEATHER, TIME), or_text=True, most=32)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Says a script by what its template is given."""
    return write_scripted_model(tmp_path_factory.mktemp("models") / "scripts")


@pytest.fixture(scope="module")
def host(start_vllm: Callable[..., Any], model: Path) -> Generator[Any, None, None]:
    arguments = {
        "enforce_eager": True,
        "tool_call_parser": "hermes",
        "reasoning_parser": "deepseek_r1",
        "default_chat_template_kwargs": {"style": "plain"},
        "hf_overrides": {"max_position_embeddings": 480},
        "override_generation_config": {"temperature": 0, "top_k": 1},
        "compilation_config": {"mode": 0, "cudagraph_mode": "NONE", "custom_ops": ["none"]},
        "limit_mm_per_prompt": {"image": 0},
    }
    host = start_vllm(model_path=str(model), engine_args=arguments)
    yield host
    host.end()


@pytest.fixture
async def client(host: Any) -> AsyncGenerator[SessionClient, None]:
    client = await host.open()
    yield client
    await client.close()


def thought_in(answer: Any) -> str:
    return "".join(output.reasoning for output in answer.outputs)


async def test_thoughts_stand_apart_for_who_asks_and_else_in_the_text(client: SessionClient, ask: Ask) -> None:
    apart = ask(client, "which?", sampling=GREEDY, parsed=True)
    older = ask(client, "which?", sampling=GREEDY)
    stopped = ask(client, "which?", sampling=GREEDY, parsed=True, stop=["it is", "answer is"])
    assert pb.FINISH_STOP == (await apart.end()).finish
    await older.end()
    await stopped.end()

    assert ("Paris it is.", "The answer is Paris.") == (thought_in(apart), apart.text)
    assert "<think>Paris it is.</think>The answer is Paris." == older.text
    assert older.ids == apart.ids
    assert ("Paris it is.", "The ") == (thought_in(stopped), stopped.text), "stop strings act on the text alone"


async def test_an_answer_that_was_begun_elsewhere_goes_on_within_its_thoughts(client: SessionClient, ask: Ask) -> None:
    whole = ask(client, "which?", sampling=GREEDY, parsed=True)
    await whole.end()
    chunks = THINKS[1:]
    assert len(chunks) == len(whole.ids)
    for after in range(1, len(chunks)):
        rest = ask(client, "which?", sampling=GREEDY, parsed=True, resume=pb.Resume(output_ids=whole.ids[:after]))
        await rest.end()
        assert whole.ids == whole.ids[:after] + rest.ids
        assert "".join(chunks[max(after, 1) : 3]) == thought_in(rest)
        assert "".join(chunks[max(after, 4) :]) == rest.text


async def test_objects_among_the_arguments_reach_the_engine(client: SessionClient, ask: Ask) -> None:
    assert 480 == client.welcome.context_tokens, "by hf_overrides"
    drawn = ask(client, "which?", parsed=True, sampling=pb.Sampling(seed=7))
    loud = ask(client, "which?", parsed=True, template_kwargs='{"style": "loud"}')
    await drawn.end()
    last = await loud.end()
    assert "The answer is Paris." == drawn.text, "by override_generation_config it is greedy"
    assert last.usage.prompt_tokens > (await ask(client, "which?", max_tokens=1).end()).usage.prompt_tokens


async def test_the_template_takes_variables_and_no_argument_of_the_rendering(client: SessionClient, ask: Ask) -> None:
    straight = ask(client, "which?", sampling=GREEDY, parsed=True, template_kwargs='{"thinking": false}')
    await straight.end()
    assert ("", "Straight: Paris.") == (thought_in(straight), straight.text)

    for wrong, said in (('{"tools": []}', "names 'tools'"), ("[1]", "no JSON object"), ("{", "no JSON object")):
        last = await ask(client, "which?", template_kwargs=wrong).end()
        assert (pb.FAULT_BAD_REQUEST, "template_kwargs") == (last.fault, last.field)
        assert said in last.error


async def test_calls_in_the_family_s_form_come_as_weft_s_lines(client: SessionClient, ask: Ask) -> None:
    both = ask(client, "weather?", sampling=GREEDY, parsed=True, constraint=AUTO)
    assert pb.FINISH_STOP == (await both.end()).finish
    assert "\n".join(BOTH) == both.text
    assert len(both.outputs) > 3, "arguments stream"

    one = pb.Constraint(json_schema=AUTO.json_schema, or_text=True, most=1)
    first = ask(client, "weather?", sampling=GREEDY, parsed=True, constraint=one)
    await first.end()
    assert BOTH[0] == first.text

    cut = ask(client, "weather?", sampling=GREEDY, parsed=True, constraint=AUTO, max_tokens=6)
    assert pb.FINISH_LENGTH == (await cut.end()).finish
    assert BOTH[0].startswith(cut.text.rstrip())
    assert "arguments" in cut.text


async def test_calls_are_found_behind_a_prompt_of_token_ids(client: SessionClient, ask: Ask) -> None:
    first = 3 + 256 + 70  # of the scripts' tokens, behind marks, bytes and merges
    rendered = [first + THINKS.index("<think>"), first + THINKS.index("</think>"), first + len(THINKS)]
    chat = ask(client, "weather?", sampling=GREEDY, parsed=True, constraint=AUTO)
    same = ask(client, "", tokens=pb.TokenIds(ids=rendered), sampling=GREEDY, parsed=True, constraint=AUTO)
    await chat.end()
    await same.end()
    assert ("\n".join(BOTH), chat.ids) == (same.text, same.ids)


async def test_the_template_tells_of_tools_instead_of_weft_s_own_words(client: SessionClient, ask: Ask) -> None:
    words = "\n".join(
        ("You can call these tools:", json.dumps(WEATHER), json.dumps(TIME), "To call one, answer with JSON only.")
    )
    told = pb.Constraint(json_schema=AUTO.json_schema, or_text=True, most=32, told=len(words))
    chat = pb.Chat(
        messages=[
            pb.Message(role="system", content=f"Be kind.\n\n{words}"),
            pb.Message(role="user", content="weather?"),
        ]
    )
    twice = ask(client, "", chat=chat, sampling=GREEDY, parsed=True, constraint=AUTO)
    once = ask(client, "", chat=chat, sampling=GREEDY, parsed=True, constraint=told)
    more, fewer = (await twice.end()).usage.prompt_tokens, (await once.end()).usage.prompt_tokens
    assert "\n".join(BOTH) == once.text == twice.text
    assert more - fewer > len("To call one, answer with JSON only.") / 2, "Weft's words were left out"


async def test_a_call_that_must_be_made_fits_its_schema_after_the_thoughts(client: SessionClient, ask: Ask) -> None:
    must = pb.Constraint(json_schema=schema_of(WEATHER))
    held = ask(client, "weather?", sampling=GREEDY, parsed=True, constraint=must)
    assert pb.FINISH_STOP == (await held.end()).finish
    assert "Paris it is." == thought_in(held)
    assert {"name": "weather", "arguments": {"city": "Paris"}} == json.loads(held.text)


async def test_a_parser_that_vllm_has_not_is_refused_by_name_before_the_model_loads(
    start: StartHost, vllm_python: str, model: Path
) -> None:
    wrong = {"tool_call_parser": "/tmp/my_parser.py"}
    async with start(python=vllm_python, engine="vllm", model_path=str(model), engine_args=wrong) as host:
        failed = await host.phase("failed", within_s=IMPORTS_S)
    assert failed["permanent"]
    assert "engine_args.tool_call_parser is '/tmp/my_parser.py'" in failed["reason"]
    assert "hermes" in failed["reason"]

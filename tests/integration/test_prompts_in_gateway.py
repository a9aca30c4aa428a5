"""Prompts made by the gateway from models' cards: the answers and counts of the engine's own, or the engine's own."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from weft_testing.story import MeshUnderTest, until
from weft_tiny import gguf_path

QUESTIONS = ("What is the capital of France?", "And Italy?", "Hello, who are you?", "<|im_end|>\n<s>capital of Peru")
MADE = re.compile(r'^weft_gateway_prompts_total\{made="(\w+)"\} (\S+)$', re.MULTILINE)
OTHER_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""The built-in model's own makes letters small."""


def answered(mesh: MeshUnderTest, question: str, model: str = "tiny") -> tuple[str, int]:
    """An answer, and the tokens of its prompt."""
    said = mesh.chat(question, model, temperature=0, max_tokens=24)
    assert 200 == said.status_code, said.text
    body = said.json()
    return body["choices"][0]["message"]["content"], body["usage"]["prompt_tokens"]


def made(mesh: MeshUnderTest) -> dict[str, float]:
    """How many prompts were made by whom."""
    text = mesh.http.get(f"{mesh.url}/metrics").text
    return {by: float(count) for by, count in MADE.findall(text)}


def no_tokenizer(mesh: MeshUnderTest, model: str = "tiny") -> str | None:
    """Why the gateway makes none of a model's token ids, once it was asked something."""
    answered(mesh, QUESTIONS[0], model)
    return mesh.http.get(f"{mesh.url}/v1/models/{model}").json()["weft"]["no_tokenizer"]


def tokenized(mesh: MeshUnderTest, question: str, model: str = "tiny") -> Any:
    body = {"model": model, "messages": [{"role": "user", "content": question}]}
    return mesh.http.post(f"{mesh.url}/tokenize", json=body)


@pytest.mark.slow
@pytest.mark.sabotage("trusting-cards")
def test_prompts_that_the_gateway_makes_are_the_engines_and_a_differing_template_is_found(tmp_path: Path) -> None:
    folders = tmp_path / "engines", tmp_path / "gateways"
    for folder in folders:
        folder.mkdir()
    # given what engines answer that make their prompts themselves
    with MeshUnderTest(folders[0], WEFT_PROMPTS="engine") as mesh:
        by_engine = [answered(mesh, question) for question in QUESTIONS]
        assert {"engine"} == {by for by, count in made(mesh).items() if count}

    with MeshUnderTest(folders[1], WEFT_PROMPTS="gateway") as mesh:
        # when the gateway has held its own against the engine's
        until("the gateway makes tiny's prompts", lambda: no_tokenizer(mesh) is None, timeout=60)
        before = made(mesh).get("gateway", 0.0)
        # then it makes them, and answers and counts are the same
        assert by_engine == [answered(mesh, question) for question in QUESTIONS]
        assert before + len(QUESTIONS) == made(mesh)["gateway"]
        # and it counts what the engine counts, and leads back to the text
        for question, (_, tokens) in zip(QUESTIONS, by_engine, strict=True):
            assert tokens == tokenized(mesh, question).json()["count"]
        ids = tokenized(mesh, QUESTIONS[0]).json()["tokens"]
        text = mesh.http.post(f"{mesh.url}/v1/detokenize", json={"model": "tiny", "tokens": ids}).json()["prompt"]
        assert "<|im_start|>user\nwhat is the capital of france?<|im_end|>\n<|im_start|>assistant\n" == text

        # when a prompt fills the context
        refused = mesh.chat("and paris " * 4000, "tiny", max_tokens=7)
        # then it is refused with the numbers
        error = refused.json()["error"]
        assert (400, "context_length_exceeded", "messages") == (refused.status_code, error["code"], error["param"])
        assert re.fullmatch(
            r"The prompt has \d{4,} tokens and `max_tokens` asks for 7, the context holds \d+ with the answer\.",
            error["message"],
        )
        assert 1 == made(mesh)["refused"]

        # when an engine renders by another template than its model's card has
        file = shutil.copy(gguf_path(), tmp_path / "own.gguf")
        deployed = mesh.weft("deploy", str(file), "--name", "own", "--engine-arg", f"chat_template={OTHER_TEMPLATE}")
        assert 0 == deployed.returncode, deployed.stderr
        # then that is found and said, and the engine goes on making its prompts
        until("the difference is found", lambda: "by the model's card" in (no_tokenizer(mesh, "own") or ""), timeout=60)
        before = made(mesh)["gateway"]
        _, tokens = answered(mesh, "Hello THERE", "own")
        assert before == made(mesh)["gateway"]
        assert tokens == tokenized(mesh, "Hello THERE", "own").json()["count"]
        assert tokens != tokenized(mesh, "Hello THERE", "tiny").json()["count"]

"""What anybody can send is not rendered, tokenized or spelled on the event loop where it may take long."""

import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from weft_prompts.templates.bounds import Bounds
from weft_prompts.templates.chat import Chat, Template
from weft_prompts.tokens.tokenizer import Tokenizer

from .conftest import Front, Fronts, Replica
from .folder_cards import TINY, FolderCards, OwnIds

EMPTY = {"role": "user", "content": ""}


async def served(fronts: Fronts, folder: Path = TINY, **more: Any) -> tuple[Front, Replica]:
    """A gateway whose prompts of a model were shown to be those of the one replica's engine."""
    front = await fronts.open(cards=FolderCards({"sim": folder}), submits=True, **more)
    replica = await front.a_replica()
    replica.engine.ids_of = OwnIds(folder)
    wire = await fronts.connect(front)
    wire.post({"model": "sim", "prompt": "x"}, path="/tokenize")
    assert 200 == (await wire.answer()).status
    return front, replica


@pytest.fixture
def on_loop(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """What is done in this thread, which is the event loop's: templates' steps, characters of texts."""
    done: list[tuple[str, int]] = []
    loop = threading.get_ident()

    def noting(owner: type, name: str, size: Callable[..., int]) -> None:
        real = getattr(owner, name)

        def noted(*arguments: Any, **named: Any) -> Any:
            if threading.get_ident() == loop:
                done.append((name, size(*arguments, **named)))
            return real(*arguments, **named)

        monkeypatch.setattr(owner, name, noted)

    def steps(template: Template, chat: Chat, *, bounds: Bounds, **_: Any) -> int:
        return bounds.steps

    def characters(tokenizer: Tokenizer, text: str, **_: Any) -> int:
        return len(text)

    def most_spelled(tokenizer: Tokenizer, ids: list[int], *, most: int) -> int:
        return most

    noting(Template, "render", steps)
    noting(Tokenizer, "decode", most_spelled)
    noting(Tokenizer, "encode", characters)
    return done


async def test_many_empty_messages_are_counted_in_a_thread(fronts: Fronts, on_loop: list[tuple[str, int]]) -> None:
    front, _ = await served(fronts)
    wire = await fronts.connect(front)
    on_loop.clear()

    wire.post({"model": "sim", "messages": [EMPTY] * 1_000}, path="/tokenize")
    found = await wire.answer()

    assert (200, True) == (found.status, found.json()["count"] > 1_000)
    assert [] == on_loop


@pytest.mark.parametrize("path", ["/tokenize", "/v1/chat/completions"])
async def test_what_a_template_writes_much_of_is_tokenized_in_a_thread(
    fronts: Fronts, on_loop: list[tuple[str, int]], tmp_path: Path, path: str
) -> None:
    folder = shutil.copytree(TINY, tmp_path / "much")
    template = folder / "chat_template.jinja"
    template.write_text(template.read_text() + "{% if messages|length == 5 %}{{ 'paris ' * 20000 }}{% endif %}")
    front, _ = await served(fronts, folder)
    wire = await fronts.connect(front)
    on_loop.clear()

    wire.post({"model": "sim", "messages": [EMPTY] * 5}, path=path)
    found = await wire.answer()

    assert (200 if path == "/tokenize" else 400) == found.status, found.body
    assert [("render", 50_000)] == on_loop
    if path == "/tokenize":
        assert found.json()["count"] > 20_000


async def test_ids_of_long_tokens_are_spelled_in_a_thread_and_no_more_than_an_answer_holds(
    fronts: Fronts, on_loop: list[tuple[str, int]], tmp_path: Path
) -> None:
    folder = shutil.copytree(TINY, tmp_path / "long")
    file = folder / "tokenizer.json"
    told = json.loads(file.read_text())
    told["added_tokens"].append(told["added_tokens"][0] | {"content": "b" * 4096, "id": 2048})
    file.write_text(json.dumps(told))
    front, _ = await served(fronts, folder)
    wire = await fronts.connect(front)
    on_loop.clear()

    wire.post({"model": "sim", "tokens": [2048] * 100}, path="/detokenize")
    some = await wire.answer()
    wire.post({"model": "sim", "tokens": [2048] * 4096}, path="/detokenize")
    refused = await wire.answer()

    assert [("decode", 65_536)] * 2 == on_loop
    assert (200, 100 * 4096) == (some.status, len(some.json()["prompt"]))
    assert (400, "tokens") == (refused.status, refused.json()["error"]["param"])
    assert refused.json()["error"]["message"].startswith("The 4096 tokens have more than 8388608 characters together")

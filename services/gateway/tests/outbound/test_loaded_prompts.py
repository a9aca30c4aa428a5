"""Models' templates and tokenizers on a gateway: loaded once, in a thread; what can't be is named and tried again."""

import asyncio
import json
import shutil
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio
import weft_tiny
from weft_contracts.card import Card, CardFile, card_of
from weft_gateway.domain.card_files import CardFileAway
from weft_gateway.domain.prompts.lacking import Lack
from weft_gateway.outbound.prompts import loaded_prompts
from weft_gateway.outbound.prompts.loaded_prompts import FIRST_PAUSE_S, NOT_LOADED, LoadedPrompts
from weft_gateway.outbound.prompts.prompt_threads import MAX_WAITING, PromptThreads, ThreadsBusy

NAMES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")


class Files:
    """Implements CardFiles over one folder, on a clock of the test's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.away = ""
        self.now = 100.0
        self.asked: list[str] = []
        self.together = asyncio.Barrier(1)

    def card(self, model: str) -> Card | None:
        return card(*(name for name in NAMES if (self.folder / name).exists()))

    async def file(self, model: str, file: CardFile) -> Path:
        self.asked.append(file.name)
        if self.away:
            raise CardFileAway(self.away)
        await self.together.wait()
        return self.folder / file.name


def card(*names: str, mark: str = "0") -> Card:
    return card_of(tuple(CardFile(name=name, checksum=f"blake3:{mark * 64}", size=1) for name in names))


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """A folder with the built-in model's files."""
    for name in NAMES:
        shutil.copy(weft_tiny.folder() / name, tmp_path / name)
    return Files(tmp_path)


@pytest_asyncio.fixture
async def loaded(files: Files) -> AsyncGenerator[LoadedPrompts]:
    threads = PromptThreads()
    made = LoadedPrompts(files, threads, lambda: files.now)
    yield made
    await made.close()
    threads.close()


async def after(loaded: LoadedPrompts, of: Card) -> str:
    """What is said of a card once it was tried: why it isn't there, or empty, or what its template lacks."""
    await loaded.ready("m", of, of.digest, 30)
    found = loaded.of("m", of, of.digest)
    return found.why if isinstance(found, Lack) else found.lacks


async def test_a_card_is_loaded_once_however_many_ask(files: Files, loaded: LoadedPrompts) -> None:
    whole = card(*NAMES)
    said = [loaded.of("m", whole, whole.digest) for _ in range(5)]

    assert [NOT_LOADED] * 5 == said
    assert "" == await after(loaded, whole)
    assert (1, sorted(NAMES)) == (loaded.count, sorted(files.asked))
    other = card(*NAMES, mark="1")
    assert "" == await after(loaded, other)
    assert 2 == loaded.count


async def test_a_cards_files_are_fetched_beside_one_another(files: Files, loaded: LoadedPrompts) -> None:
    # given files of which none comes before all are asked for
    files.together = asyncio.Barrier(len(NAMES))
    # when
    said = await after(loaded, card(*NAMES))
    # then
    assert "" == said


async def test_what_is_away_is_named_and_tried_again_ever_later(files: Files, loaded: LoadedPrompts) -> None:
    whole = card(*NAMES)
    files.away = "tokenizer.json can't be had"
    assert [files.away] * 3 == [await after(loaded, whole) for _ in range(3)]
    assert 1 == files.asked.count("tokenizer.json")

    files.now += FIRST_PAUSE_S
    assert files.away == await after(loaded, whole)
    files.now += FIRST_PAUSE_S
    assert files.away == await after(loaded, whole)
    assert 2 == files.asked.count("tokenizer.json")

    files.away = ""
    files.now += FIRST_PAUSE_S
    assert "" == await after(loaded, whole)


async def settled(loaded: LoadedPrompts, of: Card) -> str:
    """What a look says once what it began is over."""
    loaded.look("m", of, of.digest)
    for _ in range(5):
        await asyncio.sleep(0)
    found = loaded.look("m", of, of.digest)
    assert isinstance(found, Lack)
    return found.why


async def test_a_look_finds_what_is_away_and_that_it_is_back_and_loads_nothing(
    files: Files, loaded: LoadedPrompts
) -> None:
    whole = card(*NAMES)
    files.away = "tokenizer.json can't be had"
    assert [files.away] * 3 == [await settled(loaded, whole) for _ in range(3)]
    assert 1 == files.asked.count("tokenizer.json"), "not before its pause is over"
    # when it is there again, then that is known though nobody asked for the model
    files.away, files.now = "", files.now + FIRST_PAUSE_S
    assert NOT_LOADED.why == await settled(loaded, whole)
    assert (0, 2) == (loaded.count, files.asked.count("tokenizer.json"))
    assert NOT_LOADED.why == await settled(loaded, whole)
    assert 2 == files.asked.count("tokenizer.json"), "what came once is not looked at again"
    # and who asks has it loaded
    assert "" == await after(loaded, whole)


async def test_a_look_that_ends_late_forgets_nothing_that_reading_found(files: Files, loaded: LoadedPrompts) -> None:
    # given a look whose files come slowly
    whole, slow = card(*NAMES), asyncio.Barrier(len(NAMES) + 1)
    files.together = slow
    loaded.look("m", whole, whole.digest)
    async with asyncio.timeout(10):
        while slow.n_waiting < len(NAMES):
            await asyncio.sleep(0)
    # when somebody asks meanwhile, and the tokenizer can't be read
    files.together = asyncio.Barrier(1)
    (files.folder / NAMES[0]).write_bytes(b"[]")
    why = await after(loaded, whole)
    assert "tokenizer.json" in why
    other, before = card(*NAMES, mark="1"), len(files.asked)
    async with asyncio.timeout(10):
        await slow.wait()
        while len(files.asked) == before:  # one look at a time: the next begins when this one is over
            loaded.look("m", other, other.digest)
            await asyncio.sleep(0)
    # then that is still known
    found = loaded.look("m", whole, whole.digest)
    assert isinstance(found, Lack)
    assert why == found.why


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("tokenizer.json", b"[]", "tokenizer.json"),
        ("tokenizer.json", b"{" * 100_000, "tokenizer.json"),
        ("tokenizer_config.json", b"[1]", "tokenizer_config.json is no JSON object"),
        ("tokenizer_config.json", b"{", "tokenizer_config.json is not JSON"),
        ("chat_template.jinja", b"{% for x in %}", "chat template"),
        ("chat_template.jinja", b"{{ strftime_now('%d') }}", "the chat template writes the time"),
        ("chat_template.jinja", b"{% include 'x' %}", "chat template"),
    ],
)
async def test_files_of_strangers_are_refused_with_the_reason(
    files: Files, loaded: LoadedPrompts, name: str, content: bytes, said: str
) -> None:
    (files.folder / name).write_bytes(content)
    assert said in await after(loaded, card(*NAMES))


async def test_what_the_card_lacks_is_said(files: Files, loaded: LoadedPrompts) -> None:
    assert "the model has no tokenizer.json" == await after(loaded, card("tokenizer_config.json"))
    assert "tokenizer.model alone" in await after(loaded, card("tokenizer.model"))
    (files.folder / "tokenizer_config.json").write_text("{}")
    assert "the model has no chat template" == await after(loaded, card("tokenizer.json", "tokenizer_config.json"))


async def test_a_template_may_stand_in_the_configuration_or_in_json(files: Files, loaded: LoadedPrompts) -> None:
    named = {"chat_template": [{"name": "default", "template": "{{ messages[0].content }}"}]}
    (files.folder / "tokenizer_config.json").write_text(json.dumps(named))
    assert "" == await after(loaded, card("tokenizer.json", "tokenizer_config.json"))
    (files.folder / "chat_template.json").write_text(json.dumps({"chat_template": "{{ messages[0].content }}"}))
    assert "" == await after(loaded, card("tokenizer.json", "chat_template.json"))


async def test_a_file_larger_than_may_be_is_not_read(
    files: Files, loaded: LoadedPrompts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loaded_prompts, "MAX_TEXT_FILE", 10)
    assert "larger than 10 bytes" in await after(loaded, card(*NAMES))


async def test_the_least_used_model_is_forgotten(
    files: Files, loaded: LoadedPrompts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loaded_prompts, "MAX_MODELS", 2)
    cards = [card(*NAMES, mark=mark) for mark in "123"]
    for each in cards[:2]:
        await after(loaded, each)
    loaded.of("m", cards[0], cards[0].digest)
    await after(loaded, cards[2])

    assert 2 == loaded.count
    assert [True, False, True] == [not isinstance(loaded.of("m", each, each.digest), Lack) for each in cards]


async def test_a_full_line_is_refused_at_once() -> None:
    threads, go = PromptThreads(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def waits() -> None:
        asyncio.run_coroutine_threadsafe(go.wait(), loop).result(30)

    waiting = [asyncio.create_task(threads.run(waits)) for _ in range(MAX_WAITING)]
    while threads.waiting < MAX_WAITING:
        await asyncio.sleep(0)
    with pytest.raises(ThreadsBusy):
        await threads.run(waits)
    go.set()
    await asyncio.gather(*waiting)
    assert 0 == threads.waiting
    threads.close()

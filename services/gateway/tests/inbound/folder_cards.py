"""Models' cards over folders of files on this disk, and an engine that makes ids by files of its own."""

from collections.abc import Mapping
from pathlib import Path

import weft_tiny
from weft_contracts.card import Card, CardFile, card_of
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import RequestRefused
from weft_gateway.domain.card_files import CardFileAway
from weft_prompts.model_prompts import ModelPrompts
from weft_prompts.templates.bounds import Bounds
from weft_prompts.templates.chat import Chat
from weft_prompts.templates.refusals import TemplateFailed
from weft_prompts.way import Way

TINY = weft_tiny.folder()
FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")


def card_over(folder: Path) -> Card:
    """The card of a folder's files, each checksum made up of its place and length."""
    found: list[CardFile] = []
    for path in sorted(folder.iterdir()):
        if path.name in FILES:
            mark = f"{abs(hash((str(path), path.stat().st_size))):064x}"[-64:]
            found.append(CardFile(name=path.name, checksum=f"blake3:{mark}", size=path.stat().st_size))
    return card_of(tuple(found))


class FolderCards:
    """Implements CardFiles."""

    def __init__(self, folders: Mapping[str, Path]) -> None:
        """`folders`: by models' names."""
        self.folders = dict(folders)
        self.away = ""
        """why files can't be had; empty: they can"""
        self.asked: list[str] = []

    def card(self, model: str) -> Card | None:
        folder = self.folders.get(model)
        return None if folder is None else card_over(folder)

    async def file(self, model: str, file: CardFile) -> Path:
        self.asked.append(file.name)
        if self.away:
            raise CardFileAway(self.away)
        return self.folders[model] / file.name


def prompts_of(folder: Path) -> ModelPrompts:
    """The prompts of a folder's files."""
    return ModelPrompts.of(*((folder / name).read_bytes() for name in FILES))


class OwnIds:
    """How an engine with a folder's files makes ids."""

    def __init__(self, folder: Path = TINY, way: Way = Way.TEMPLATE) -> None:
        self._prompts = prompts_of(folder)
        self._way = way
        self.asked = 0

    def __call__(self, prompt: pb.Prompt) -> list[int]:
        self.asked += 1
        if prompt.WhichOneof("prompt") == "text":
            return self._encode(prompt.text, True)
        messages = [
            {"role": m.role, "content": m.content} | ({"name": m.name} if m.name else {}) for m in prompt.chat.messages
        ]
        try:
            return self._prompts.of_chat(Chat(messages), self._way, self._encode, Bounds())
        except TemplateFailed as failed:
            raise RequestRefused(pb.FAULT_BAD_REQUEST, str(failed), "prompt") from None

    def _encode(self, text: str, ends: bool) -> list[int]:
        return self._prompts.tokenizer.encode(text, ends=ends)

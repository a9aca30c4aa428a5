"""A gateway that reads cards' files, over a log in the hand."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from weft_contracts.card import CardFile
from weft_contracts.facts.source import SimulatedSource, Source, SourceFile
from weft_contracts.facts.values import MetadataFile, ModelSpec
from weft_gateway.domain.card_files import CardSettings
from weft_gateway.outbound.fetched_card_files import FetchedCardFiles
from weft_gateway.projections.directory import Directory
from weft_runtime.tls import TlsFolder
from weft_testing.origin import Origin
from weft_testing.publishing_mesh import NAME, PublishingMesh, published
from weft_testing.wanted_files import QUICK

BODY = b'{"model": {}}' * 5000
FILE = published(BODY)
CHECKSUM = f"blake3:{FILE.blake3}"


class Blobs:
    """The object store's answers, and how often it was asked."""

    def __init__(self, **there: bytes) -> None:
        self.there = there
        self.asked = 0

    async def read(self, name: str, size: int | None, take: Callable[[bytes], object]) -> None:
        self.asked += 1
        if name not in self.there or size not in (None, len(self.there[name])):
            raise KeyError(name)
        take(self.there[name])


class Gateway:
    """One gateway's reader, with a log in the hand."""

    def __init__(
        self,
        folder: Path,
        source: Source | None = None,
        *listed: MetadataFile,
        hub: str = "",
        tls: TlsFolder | None = None,
    ) -> None:
        self.directory = Directory()
        files = tuple(SourceFile(name=file.name, size=file.size) for file in listed)
        spec = ModelSpec(source=source or SimulatedSource(), engine="vllm", files=files)
        self.mesh = PublishingMesh(lambda commit: self.directory.fold([commit]), spec=spec)
        self.blobs = Blobs()
        settings = CardSettings(folder, hub=hub, allow="127.0.0.1")
        self.files = FetchedCardFiles(self.directory, self.blobs.read, settings, tls, QUICK)

    def file(self, name: str = "tokenizer.json") -> CardFile:
        card = self.files.card(NAME)
        assert card is not None
        found = card.file(name)
        assert found is not None
        return found

    async def content(self, file: CardFile | None = None) -> bytes:
        path = await self.files.file(NAME, file or self.file())
        return await asyncio.to_thread(path.read_bytes)


def port_of(origin: Origin) -> int:
    return int(origin.url.rpartition(":")[2].partition("/")[0])

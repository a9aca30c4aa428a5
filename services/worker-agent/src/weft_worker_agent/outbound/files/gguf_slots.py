"""The files of a model's card that stand in a GGUF file's header: made once on a node, kept by content, found again."""

import asyncio
import os
import shutil
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final
from weakref import WeakValueDictionary

import blake3
import weft_gguf
import weft_prompts.tokens
from weft_contracts.facts.values import MetadataFile
from weft_files.checksum import Checksum
from weft_files.faults import NoRoom
from weft_files.layout import Layout, LayoutTaken
from weft_files.store import Store
from weft_files.wanted import Wanted
from weft_runtime.logs import get_logger

from weft_worker_agent.outbound.files.making_slots import NO_TOKENIZER
from weft_worker_agent.outbound.files.metadata import Offer, hashed
from weft_worker_agent.outbound.supervisor.environment import PROGRAMS, chosen

WITHIN_S: Final = 180.0
"""For one file's header."""
MOST_BYTES: Final = 1 << 30
"""Of all that is kept; the least used goes first."""
_MAKING: Final = "making-"
_log: Any = get_logger("weft.slots")


class GgufSlots:
    """Of one agent. Methods are called on the loop; the work is done in a child and in threads."""

    def __init__(self, folder: Path, *, python: str = sys.executable, within_s: float = WITHIN_S) -> None:
        """Nothing is read or written before the first question."""
        self._folder = folder
        self._python = python
        self._within_s = within_s
        self._store: Store | None = None
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def offers(self, path: Path) -> tuple[Offer, ...]:
        """What stands in this file's header, as files; none where it can't be had, which is logged."""
        try:
            key = await asyncio.to_thread(_key, path)
            turn = self._turns.setdefault(key, asyncio.Lock())
            async with turn:
                made = await asyncio.to_thread(self._kept, key)
                return made if made is not None else await self._made(path, key)
        except (OSError, NoRoom, LayoutTaken) as error:
            _log.warning("a model's tokenizer is not published", file=str(path), why=str(error))
            return ()

    def _opened(self) -> Store:
        if self._store is None:
            self._store = Store(self._folder, keep_free=64 << 20)
            for left in self._folder.glob(f"{_MAKING}*"):
                shutil.rmtree(left, ignore_errors=True)
        return self._store

    def _kept(self, key: str) -> tuple[Offer, ...] | None:
        """What was made of it before, each file checked; None: nothing, or it is not whole any more."""
        store = self._opened()
        layout = store.layout(key)
        if layout is None:
            return None
        for name, (digits, size) in layout.files.items():
            there = store.layout_folder(key) / name
            if store.find(_wanted(name, digits, size)) is None or not there.is_file():
                store.remove(key)
                return None
        return _offers(store, layout)

    async def _made(self, path: Path, key: str) -> tuple[Offer, ...]:
        aside = self._folder / f"{_MAKING}{os.urandom(8).hex()}"
        await asyncio.to_thread(aside.mkdir)
        try:
            status, said = await self._run(path, aside)
            if status not in (0, NO_TOKENIZER):
                why = said or f"the process that makes it ended with status {status}"
                _log.warning("a model's tokenizer is not published", file=str(path), why=why)
                return ()
            if status == NO_TOKENIZER:
                _log.info("a model's tokenizer is its engine's alone", file=str(path), why=said)
            return await asyncio.to_thread(self._keep, key, aside)
        finally:
            await asyncio.to_thread(shutil.rmtree, aside, ignore_errors=True)

    async def _run(self, path: Path, aside: Path) -> tuple[int, str]:
        """The child's status, and what it said."""
        module = "weft_worker_agent.outbound.files.making_slots"
        child = await asyncio.create_subprocess_exec(
            *(self._python, "-P", "-m", module, str(path), str(aside)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env=chosen(PROGRAMS),
        )
        try:
            async with asyncio.timeout(self._within_s):
                _, said = await child.communicate()
        except TimeoutError:
            return -1, f"it was not made within {self._within_s:g} s"
        finally:
            if child.returncode is None:
                child.kill()
                await child.wait()
        lines = said.decode("utf-8", "replace").strip().splitlines()
        return child.returncode or 0, lines[-1][:500] if lines else ""

    def _keep(self, key: str, aside: Path) -> tuple[Offer, ...]:
        store = self._opened()
        blobs: dict[str, Any] = {}
        for file in sorted(aside.iterdir()):
            digits, size = hashed(file), file.stat().st_size
            wanted = _wanted(file.name, digits, size)
            blobs[file.name] = store.find(wanted) or store.adopt(file, digits, wanted, ())
        store.lay_out(key, blobs)
        store.collect(MOST_BYTES, {key})
        layout = store.layout(key)
        return _offers(store, layout) if layout is not None else ()


def _offers(store: Store, layout: Layout) -> tuple[Offer, ...]:
    files: Mapping[str, tuple[str, int]] = layout.files
    return tuple(
        Offer(MetadataFile(name=name, size=size, blake3=digits), store.layout_folder(layout.name) / name)
        for name, (digits, size) in sorted(files.items())
    )


def _wanted(name: str, digits: str, size: int) -> Wanted:
    return Wanted(name, size, Checksum("blake3", digits), size)


def _key(path: Path) -> str:
    """Names this very file, and the code that makes something of it. Raises OSError."""
    real = path.resolve(strict=True)
    found = real.stat()
    told = f"{real}\0{found.st_ino}\0{found.st_size}\0{found.st_mtime_ns}\0{_maker()}"
    return blake3.blake3(told.encode("utf-8", "surrogateescape")).hexdigest()


@lru_cache(maxsize=1)
def _maker() -> str:
    """A digest of the code: what an older one made is made anew."""
    digest = blake3.blake3()
    for package in (weft_prompts.tokens, weft_gguf):
        for folder in package.__path__:
            for file in sorted(Path(folder).glob("*.py")):
                digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()

"""Answers inspections: this node's own disk one after the other, sources elsewhere some at a time beside it."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from weft_contracts import subjects
from weft_contracts.facts.machine import FileFound, FileMissing
from weft_contracts.facts.source import HfSource, HttpsSource, RemoteSource, S3Source
from weft_contracts.ids import InspectionId, NodeId
from weft_contracts.shown import shown
from weft_contracts.source_keys import NoSource, source_of
from weft_runtime.logs import get_logger

from weft_worker_agent.domain.inspection_answers import answerable, file_missing
from weft_worker_agent.domain.own_part import Question
from weft_worker_agent.inbound.reporting_loop import Reporting
from weft_worker_agent.inbound.wake import Wake
from weft_worker_agent.outbound.files.found import NotFound
from weft_worker_agent.outbound.files.looks_elsewhere import AT_ONCE, LooksElsewhere
from weft_worker_agent.outbound.files.model_files import look
from weft_worker_agent.outbound.processes.hosts import Hosts
from weft_worker_agent.projections.own_log import OwnLog

_IDLE_S = 1.0
_FAULT_S: Final = 30.0
"""Before the next try where an answer could not even be made."""
_LOOK_S: Final = 30.0
"""A disk that doesn't answer for so long is as good as none."""
_log: Any = get_logger("weft.inspections")


class Inspections:
    """What one connection's questions are answered with. A new connection takes a new one."""

    def __init__(
        self, node: NodeId, own: OwnLog, hosts: Hosts, elsewhere: LooksElsewhere, reporting: Reporting
    ) -> None:
        self._node = node
        self._own = own
        self._hosts = hosts
        self._elsewhere = elsewhere
        self._reporting = reporting
        self.wakes = (Wake(), Wake())

    def ring(self) -> None:
        """There may be a new question."""
        for wake in self.wakes:
            wake.ring()

    async def run(self) -> None:
        """Answer for ever: a hub that is slow holds up no look at a disk."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._lane(self.wakes[0], 1, lambda question: remote_of(question) is None))
            tasks.create_task(self._lane(self.wakes[1], AT_ONCE, lambda question: remote_of(question) is not None))

    async def _lane(self, wake: Wake, at_once: int, takes: Callable[[Question], bool]) -> None:
        under_way: dict[InspectionId, asyncio.Task[None]] = {}

        async def one(id: InspectionId, question: Question) -> None:
            try:
                if not await self._answer(id, question):
                    await asyncio.sleep(_IDLE_S)
            except Exception:  # nothing else here ends of it
                _log.exception("inspection not answered", source=question.source)
                await asyncio.sleep(_FAULT_S)
            finally:
                del under_way[id]
                wake.ring()

        async with asyncio.TaskGroup() as tasks:
            while True:
                open = self._own.part.questions.items() if self._own.may_decide else ()
                fresh = [each for each in open if each[0] not in under_way and takes(each[1])]
                for id, question in fresh[: at_once - len(under_way)]:
                    under_way[id] = tasks.create_task(one(id, question))
                await wake.wait(_IDLE_S)

    async def _answer(self, id: InspectionId, question: Question) -> bool:
        """Look, and append what was found. False if it could not be appended."""
        fact: FileFound | FileMissing
        try:
            source = remote_of(question)
            found = await (self._own_disk(id, question) if source is None else self._source(id, question, source))
            fact = answerable(found)
        except NotFound as missing:
            fact = file_missing(id, question.source, str(missing))
        except Exception as error:  # a question must be answered, whatever a strange file does to its reader
            _log.exception("inspection failed", source=question.source)
            reason = f"{shown(question.source)} could not be looked at: {type(error).__name__}: {error}"
            fact = file_missing(id, question.source, reason)
        commit = self._reporting.guarded(subjects.machine(self._node), fact, question.cause)
        return await self._reporting.append(commit)

    async def _own_disk(self, id: InspectionId, question: Question) -> FileFound:
        engine, formats = question.engine, question.formats
        try:
            async with asyncio.timeout(_LOOK_S):
                found = await asyncio.to_thread(look, question.source, engine, self._hosts.starts.engines, formats)
        except TimeoutError:
            reason = f"the disk that holds {question.source} did not answer within {_LOOK_S:g} s"
            raise NotFound(reason) from None
        return FileFound(
            inspection=id,
            source=question.source,
            size=found.size,
            weights=found.weights,
            metadata=tuple(offer.file for offer in found.offers),
        )

    async def _source(self, id: InspectionId, question: Question, source: RemoteSource) -> FileFound:
        found = await self._elsewhere.look(source, question.engine, self._hosts.starts.engines, question.formats)
        return FileFound(
            inspection=id,
            source=question.source,
            size=found.size,
            weights=found.weights,
            files=found.files,
            pinned=found.pinned,
            licence=found.licence,
            gated=found.gated,
        )


def remote_of(question: Question) -> RemoteSource | None:
    """The source of a question about files that lie elsewhere; None: it is about this node's own disk."""
    try:
        source = source_of(question.source)
    except NoSource:
        return None
    return source if isinstance(source, HfSource | HttpsSource | S3Source) else None

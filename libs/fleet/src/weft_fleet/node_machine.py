"""A node as its machine's events tell it: what it has, what it found, what it fetched."""

from collections.abc import Mapping
from typing import TypeVar, assert_never

from weft_contracts.backend_wishes import after_fault, after_report
from weft_contracts.facts.inspection import Requested
from weft_contracts.facts.machine import MachineFact
from weft_contracts.facts.values import Hardware
from weft_contracts.file_wishes import after_files_failed, after_files_moved
from weft_contracts.ids import InspectionId
from weft_contracts.source_keys import secret_named

from weft_fleet.changed import changed
from weft_fleet.node_view import Asked, NodeView, looked_at, relabelled

FILES_KEPT = 1000
"""Answers of a node about its files that are remembered, and questions about them that it has not answered."""
K = TypeVar("K")
V = TypeVar("V")


def evolve_asked(view: NodeView, inspection: InspectionId, asked: Requested) -> NodeView:
    """The node after it was asked to look at a source for an engine."""
    question = Asked(asked.engine, secret_named(asked.source))
    return changed(view, asked=_kept({**view.asked, inspection: question}))


def evolve_machine(view: NodeView, fact: MachineFact, at: float) -> NodeView:
    """The node after what its agent found out, which the log took `at` seconds since the epoch."""
    match fact.type:
        case "pressure_changed":  # most that machines say
            known = fact.device in view.pressure or _has(view.hardware, fact.device)
            return changed(view, pressure={**view.pressure, fact.device: fact.bytes}) if known else view
        case "reported":
            devices = {device.index for device in fact.hardware.devices}
            reported = changed(
                view,
                hardware=fact.hardware,
                backends=fact.backends,
                builtins=fact.builtins,
                agent_version=fact.agent_version,
                installs=fact.installs,
                environments=fact.environments,
                wishes=after_report(view.wishes, fact.environments),
                reads=fact.reads,
                pressure={index: used for index, used in view.pressure.items() if index in devices},
            )
            return relabelled(reported)
        case "file_found" | "file_missing":
            question = view.asked.get(fact.inspection)
            key = fact.source if question is None else looked_at(fact.source, question.engine)
            asked = {id: each for id, each in view.asked.items() if id != fact.inspection}
            return changed(view, asked=asked, files=_kept({**view.files, key: fact}))
        case "files_came":
            return changed(
                view,
                fetched=_kept({**view.fetched, fact.files: fact.bytes}),
                fetched_at=_kept({**view.fetched_at, fact.files: at}),
                file_wishes=after_files_moved(view.file_wishes, fact.files, here=True),
            )
        case "files_gone":
            return changed(
                view,
                fetched=_without(view.fetched, fact.files),
                fetched_at=_without(view.fetched_at, fact.files),
                file_wishes=after_files_moved(view.file_wishes, fact.files, here=False),
            )
        case "files_failed":
            return changed(view, file_wishes=after_files_failed(view.file_wishes, fact))
        case "install_failed":
            return changed(view, wishes=after_fault(view.wishes, fact))
        case _:
            assert_never(fact)


def _has(hardware: Hardware | None, index: int) -> bool:
    return hardware is not None and any(device.index == index for device in hardware.devices)


def _without(known: Mapping[str, V], key: str) -> Mapping[str, V]:
    return {each: value for each, value in known.items() if each != key}


def _kept(known: dict[K, V]) -> dict[K, V]:
    """Without the oldest where there are too many: a node may say what it likes, and all have to remember it."""
    if len(known) > FILES_KEPT:
        del known[next(iter(known))]
    return known

"""What a node tells of its installs, fetches, loads and memory, and when it is worth telling again. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel
from weft_contracts.facts.values import EngineName, Vendor
from weft_contracts.ids import NodeId
from weft_contracts.signals import (
    MOST_FETCHES,
    PROGRESS_AGAIN_S,
    FetchSaid,
    InstallSaid,
    LoadSaid,
    MemorySaid,
    NodeProgress,
)

from weft_worker_agent.domain.install_progress import InstallProgress

MOST_INSTALLS, MOST_LOADS, MOST_MEMORY = 32, 64, 256
"""Of one signal; what is more is left out."""
_STEP_SHARE, _STEP_BYTES = 0.02, 16 << 20
"""A change of memory below this part of the claim, or below so many bytes, is not worth a word."""
_PACKAGE = re.compile(r"[A-Za-z0-9._!+-]{1,128}")
"""An installer's word that can be told as it is."""


def install_said(
    engine: EngineName,
    version: str,
    vendor: Vendor,
    progress: InstallProgress,
    *,
    since_s: float,
    fetching_s: float,
    overdue_s: float,
) -> InstallSaid:
    """One install. `since_s`: seconds since it was asked for; from `overdue_s` on it is overdue."""
    return InstallSaid(
        engine=engine,
        version=version,
        vendor=vendor,
        phase=progress.phase,
        package=progress.package if _PACKAGE.fullmatch(progress.package) else "",
        fetched=min(progress.fetched, progress.total),
        total=progress.total,
        fetching_s=max(fetching_s, 0.0),
        since_s=max(since_s, 0.0),
        overdue=since_s >= overdue_s,
    )


@dataclass(frozen=True, slots=True)
class WeightsTaken:
    """How much of its weights a loading host was seen to take. Times are the agent's monotonic seconds."""

    bytes: int = 0
    first_at: float | None = None
    """When the first of it was seen; None: nothing yet."""


def taken_more(before: WeightsTaken, bytes: int, now: float) -> WeightsTaken:
    """After one more look. It never falls: an engine lets go of its files once it has copied them."""
    if bytes <= before.bytes:
        return before
    return WeightsTaken(bytes, now if before.first_at is None else before.first_at)


def memory_told(before: int | None, used: int, claimed: int) -> int:
    """Bytes that are told as used: what was told before, unless that has become wrong by a step."""
    if before is None or abs(used - before) > max(_STEP_SHARE * claimed, _STEP_BYTES):
        return used
    return before


def told(
    node: NodeId,
    installs: Sequence[InstallSaid],
    loads: Sequence[LoadSaid],
    memory: Sequence[MemorySaid],
    fetches: Sequence[FetchSaid] = (),
) -> NodeProgress:
    """All of it, as far as a signal has room."""
    return NodeProgress(
        node=node,
        installs=tuple(installs[:MOST_INSTALLS]),
        loads=tuple(loads[:MOST_LOADS]),
        fetches=tuple(fetches[:MOST_FETCHES]),
        memory=tuple(memory[:MOST_MEMORY]),
    )


def is_due(said: NodeProgress | None, now: NodeProgress, waited_s: float) -> bool:
    """Whether to say it: something moved, or what stands still was said long ago. Time alone moves nothing."""
    empty = not (now.moves or now.memory)
    if said is None:
        return not empty
    return _figures(said) != _figures(now) or (not empty and waited_s >= PROGRESS_AGAIN_S)


def _figures(progress: NodeProgress) -> tuple[tuple[BaseModel, ...], ...]:
    """All that doesn't move with time alone."""
    installs = tuple(each.model_copy(update={"since_s": 0.0, "fetching_s": 0.0}) for each in progress.installs)
    loads = tuple(each.model_copy(update={"loading_s": 0.0}) for each in progress.loads)
    fetches = tuple(each.model_copy(update={"fetching_s": 0.0, "rate": 0.0}) for each in progress.fetches)
    return installs, loads, fetches, progress.memory

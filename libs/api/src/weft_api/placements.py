"""Answers about where replicas are, or would go, and why."""

from typing import Any, NotRequired

from typing_extensions import TypedDict

from weft_api.models import ModelState, Size
from weft_api.values import SourceFile


class NodeAnswer(TypedDict):
    """One node's answer about a replica. `refusal`: why not; null: it could take it. `bytes`: what it would claim of
    each of the `devices`, `host` of the machine's memory beside them."""

    node: str
    name: str
    refusal: str | None
    rung: str
    devices: list[int]
    bytes: list[int]
    host: int
    score: float
    scores: dict[str, float]
    chosen: bool


class LastEnd(TypedDict):
    """How a replica's process ended that nobody had asked to, with the last lines that it had said."""

    reason: str
    last_lines: list[str]


class ModelStands(TypedDict):
    """How a model stands: `ready` of its `wanted` replicas answer, `reason` says what keeps it. There are `least` to be
    and at most `most` (null: no bound); of one that is spread over `all_nodes` one on each node that matches. `size`:
    what demand changed last, null where it never did."""

    state: ModelState
    reason: str | None
    ready: int
    wanted: int
    least: int
    most: int | None
    all_nodes: bool
    size: Size | None


class RemedyStep(TypedDict):
    """One change. `command` does it; empty: none does it alone. `node`: the one that it changes, null: none that is
    there. `replicas` end; `arguments` are fields of the spec, and engine arguments, with what they are to say."""

    kind: str
    what: str
    command: str
    node: str | None
    replicas: list[str]
    arguments: dict[str, Any]


class Remedy(TypedDict):
    """Changes after all of which the replica has a place, on the node of this name. `alike`: on so many other nodes
    changes of the same kinds would do it."""

    steps: list[RemedyStep]
    node: str
    alike: int


class ReplicaExplanation(TypedDict):
    """A decision, or where there was none yet what it would be: every node's answer, the best first. Where
    `recomputed` is false the answers are those that the decision's receipt kept, `refusals` counts the others by
    reason, and `why_not_recomputed` says why. `troubles`: a line each on what else went wrong with the model.

    Of a replica that has no place, `remedies` are the smallest sets of changes after which it has one now, the smallest
    first; empty: nothing that was tried gives it one. `remedies_note` says what was left out, or why there are none.

    Of a model, `stands` says how it stands. One that has no replica is told by the one that would come next, with the
    last end that any of its last ones had."""

    replica: str
    model: str
    position: int
    policy: str
    outcome: str
    nodes: list[NodeAnswer]
    receipt: dict[str, Any] | None
    recomputed: bool
    refusals: dict[str, int]
    why_not_recomputed: NotRequired[str]
    last_end: LastEnd | None
    troubles: list[str]
    stands: NotRequired[ModelStands]
    remedies: NotRequired[list[Remedy]]
    remedies_note: NotRequired[str]


class DryRun(TypedDict):
    """How a deploy would go, replica by replica; one that finds no place is the last. `wanted`: replicas in all;
    `staying`: those that serve the spec as it is; `placed`: further ones that have a place. Every node's answer is
    told for the first eight of `replicas`."""

    wanted: int
    staying: int
    placed: int
    fits: bool
    architecture: str
    weight_bytes: int
    files: list[SourceFile]
    source: str
    replicas: list[ReplicaExplanation]

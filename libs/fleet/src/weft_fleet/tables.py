"""What the fleet's fold remembers, and how it is read: nodes, models, replicas and their assignments, by id."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from weft_contracts.backends import BackendRecipe, BackendVariant, Recipes, builtin_recipes
from weft_contracts.engines import BUILTIN, EngineProfile
from weft_contracts.facts.mesh import BrakeSet
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import ModelId, NodeId, ReplicaId
from weft_contracts.policies import DEFAULT_NAME, PlacementPolicy

from weft_fleet.alias_view import AliasView
from weft_fleet.assignments import Assignment, NodeAssignments
from weft_fleet.backend_upgrade import BackendUpgrade
from weft_fleet.canonical import digest_of
from weft_fleet.model_view import ModelView
from weft_fleet.node_view import NodeView
from weft_fleet.replica_view import ReplicaView
from weft_fleet.room import Room
from weft_fleet.secret_view import SecretView

NO_ASSIGNMENTS = NodeAssignments()


@dataclass(slots=True)
class FleetTables:
    """All that is known of the fleet at one position of the log. Nothing here changes it: `Fleet.apply` does."""

    position: int = 0
    """The last sequence that was folded."""
    nodes: dict[NodeId, NodeView] = field(default_factory=dict[NodeId, NodeView])
    models: dict[ModelId, ModelView] = field(default_factory=dict[ModelId, ModelView])
    replicas: dict[ReplicaId, ReplicaView] = field(default_factory=dict[ReplicaId, ReplicaView])
    brake: BrakeSet | None = None
    """Set while so many nodes are silent that nothing may be replaced or evicted."""
    waiting: dict[ReplicaId, None] = field(default_factory=dict[ReplicaId, None])
    """Replicas that are wanted and have no place, oldest first."""
    rooms: dict[ReplicaId, Room] = field(default_factory=dict[ReplicaId, Room])
    """By replica that waits, the room that was made for it."""
    leaving: dict[ReplicaId, None] = field(default_factory=dict[ReplicaId, None])
    """Replicas that are not wanted and are still assigned somewhere."""
    broken: dict[ReplicaId, None] = field(default_factory=dict[ReplicaId, None])
    """Groups that lack a rank: all of their ranks are to start anew."""
    closed: dict[ReplicaId, None] = field(default_factory=dict[ReplicaId, None])
    """Replicas that are over: not wanted, and no claim is left. Oldest first, at most `fleet.CLOSED_KEPT`."""
    touched: dict[NodeId, int] = field(default_factory=dict[NodeId, int])
    """When what a node can take last changed (log sequence); the latest comes last."""
    engines: Mapping[str, EngineProfile] = field(default_factory=lambda: dict(BUILTIN))
    """What there is to know of each engine that a spec may name: built-in ones, and those that an admin told of."""
    told_recipes: Mapping[str, BackendRecipe] = field(default_factory=dict[str, BackendRecipe])
    """How nodes install an engine, where an admin told."""
    upgraded: Mapping[str, BackendUpgrade] = field(default_factory=dict[str, BackendUpgrade])
    """By engine: from which recipes' environments its replicas were last told to move."""
    used_recipes: Mapping[str, BackendVariant] = field(default_factory=dict[str, BackendVariant])
    """What assignments named for engines to run in, by digest, the latest last: at most
    `backend_upgrade.RECIPES_KEPT`."""
    formats: Mapping[str, int] = field(default_factory=lambda: dict[str, int]())
    """The facts (`<kind>.<type>`) that may be written in versions above 1, each with the newest one."""
    policies: Mapping[str, PlacementPolicy] = field(default_factory=dict[str, PlacementPolicy])
    """Placement policies that an admin told, by name, beside those that Weft comes with."""
    policy: str = DEFAULT_NAME
    """The one by which models are placed that name none."""
    secrets: Mapping[str, SecretView] = field(default_factory=dict[str, SecretView])
    """Secrets by name, which specs may name. Their values are nowhere in the log."""
    aliases: Mapping[str, AliasView] = field(default_factory=dict[str, AliasView])
    """Names that stand for several models, by name. None of them is a model's name."""
    naming: dict[str, dict[ModelId, None]] = field(default_factory=dict[str, dict[ModelId, None]])
    """Models of which a revision names the files, by `digest.files_digest`."""
    told: dict[str, dict[NodeId, None]] = field(default_factory=dict[str, dict[NodeId, None]])
    """Nodes that were told to have the files, or are to, by `digest.files_digest`: no others may hold them."""
    _assigned: dict[NodeId, NodeAssignments] = field(default_factory=dict[NodeId, NodeAssignments])
    _names: dict[str, ModelId] = field(default_factory=dict[str, ModelId])

    @property
    def recipes(self) -> Recipes:
        """How nodes install each engine: as Weft's own catalogue says, and over it what an admin told."""
        return {**builtin_recipes(), **self.told_recipes} if self.told_recipes else builtin_recipes()

    def model_named(self, name: str) -> ModelView | None:
        """The model that bears this name now."""
        id = self._names.get(name)
        return self.models.get(id) if id is not None else None

    def assigned(self, node: NodeId) -> NodeAssignments:
        """What replicas hold on a node; nothing where the node is unknown or removed."""
        return self._assigned.get(node, NO_ASSIGNMENTS)

    def claims(self, node: NodeId) -> Mapping[int, int]:
        """Claimed bytes by device; a device without a claim is absent."""
        return self.assigned(node).claims

    def assignment(self, node: NodeId, replica: ReplicaId) -> Assignment | None:
        """The replica's present assignment on a node, also when it is retiring; None if it has none."""
        return self.assigned(node).assignments.get(replica)

    def assigned_sequence(self, node: NodeId, replica: ReplicaId) -> int | None:
        """The log sequence of the replica's present assignment on a node."""
        assignment = self.assignment(node, replica)
        return assignment.sequence if assignment is not None else None

    def replicas_on(self, node: NodeId) -> tuple[ReplicaId, ...]:
        """Replicas that hold a claim on a node, oldest assignment first."""
        return tuple(id for id, assignment in self.assigned(node).assignments.items() if assignment.holds)

    def spec_of(self, replica: ReplicaView) -> tuple[str, ModelSpec]:
        """The digest and spec of a replica's revision. Raises KeyError if the log lacks it."""
        return self.models[replica.model].specs[replica.revision]

    def digest(self) -> str:
        """64 hex digits: equal for fleets folded from the same log, in any process."""
        return digest_of(self)

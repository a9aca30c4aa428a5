"""What facts about the whole mesh change: the brake, engines, recipes, formats, policies, secrets."""

from collections.abc import Sequence

from weft_contracts import formats
from weft_contracts.commit import Recorded
from weft_contracts.engines import BUILTIN
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.mesh import (
    BackendSet,
    BackendUpgraded,
    BackendWithdrawn,
    BrakeLifted,
    BrakeSet,
    EngineProfileSet,
    EngineProfileWithdrawn,
    FormatRaised,
    PolicyChosen,
    PolicySet,
    PolicyWithdrawn,
    SecretRemoved,
    SecretSet,
)

from weft_fleet.backend_upgrade import BackendUpgrade, tried_again
from weft_fleet.secret_view import SecretView
from weft_fleet.tables import FleetTables


def apply_mesh(tables: FleetTables, facts: Sequence[Fact], recorded: Recorded) -> None:
    """Fold facts of one commit of the mesh into the tables."""
    for fact in facts:
        match fact:
            case BrakeSet():
                tables.brake = fact
            case BrakeLifted():
                tables.brake = None
            case EngineProfileSet(profile=profile):
                tables.engines = {**tables.engines, profile.name: profile, **BUILTIN}
            case EngineProfileWithdrawn(engine=engine) if engine not in BUILTIN:
                tables.engines = {name: profile for name, profile in tables.engines.items() if name != engine}
            case BackendSet(recipe=recipe):
                tables.told_recipes = {**tables.told_recipes, recipe.engine: recipe}
            case BackendWithdrawn(engine=engine):
                tables.told_recipes = {name: each for name, each in tables.told_recipes.items() if name != engine}
            case BackendUpgraded(engine=engine, superseded=superseded):
                tables.upgraded = {**tables.upgraded, engine: BackendUpgrade(superseded, recorded.sequence)}
                tables.models.update(tried_again(tables.models, engine))
            case FormatRaised():
                tables.formats = formats.after(tables.formats, fact)
            case PolicySet(policy=policy):
                tables.policies = {**tables.policies, policy.name: policy}
            case PolicyWithdrawn(name=gone):
                tables.policies = {name: each for name, each in tables.policies.items() if name != gone}
            case PolicyChosen(name=chosen):
                tables.policy = chosen
            case SecretSet():
                tables.secrets = {**tables.secrets, fact.name: SecretView(fact.version, fact.sealed, recorded.at)}
            case SecretRemoved(name=removed):
                tables.secrets = {name: view for name, view in tables.secrets.items() if name != removed}
            case _:
                pass

"""Which revisions of a model count still."""

from weft_fleet.model_view import ModelView
from weft_fleet.tables import FleetTables


def live_revisions(fleet: FleetTables, model: ModelView) -> set[int]:
    """Numbers of the newest, the kept one, and those with replicas; of a deleted model of these alone."""
    revisions = {fleet.replicas[id].revision for id in model.replicas}
    if not model.deleted:
        revisions.add(model.revision)
        if model.kept is not None:
            revisions.add(model.kept.number)
    return {each for each in revisions if each in model.specs}

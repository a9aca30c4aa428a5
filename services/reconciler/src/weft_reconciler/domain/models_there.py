"""What models there are, for whoever named one that there is not."""

from weft_fleet import Fleet

_LISTED = 20


def models_there(fleet: Fleet) -> str:
    """The end of a sentence that refuses a model: names of those that are deployed."""
    names = sorted(model.name for model in fleet.models.values() if not model.deleted)
    return f"there are {', '.join(names[:_LISTED])}" if names else "none is deployed"

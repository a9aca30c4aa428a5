"""All attacks, in the order of the registry's ATTACKS.md."""

from . import attacks_by_floods, attacks_on_appends, attacks_on_folds, attacks_on_joining, attacks_on_subjects
from .attack import Attack

ATTACKS: tuple[Attack, ...] = (
    *attacks_on_subjects.ATTACKS,
    *attacks_on_appends.ATTACKS,
    *attacks_on_joining.ATTACKS,
    *attacks_by_floods.ATTACKS,
    *attacks_on_folds.ATTACKS,
)

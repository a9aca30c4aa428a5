"""A filter or a scorer that lies in its folder is asked."""

from pathlib import Path

import weft_placement
from weft_placement import Policy
from weft_placement.filters import FILTERS
from weft_placement.policy import _WEIGHTS
from weft_placement.scorers import weighted

EVERY = Policy("every", apart="no", slots=64, **{name: 1.0 for name in _WEIGHTS if name != "pack"})
"""Each weight counts."""


def modules(kind: str) -> set[str]:
    files = (Path(weft_placement.__path__[0]) / kind).glob("*.py")
    return {f"weft_placement.{kind}.{file.stem}" for file in files if file.stem != "__init__"}


def test_every_filter_that_there_is_is_asked() -> None:
    assert modules("filters") == {passes.__module__ for passes in FILTERS} | {"weft_placement.filters.avoid"}


def test_every_scorer_that_there_is_is_asked() -> None:
    scorers = {scorer for _, scorer, _ in weighted(EVERY, "binpack")}
    assert modules("scorers") == {each.__module__ for each in scorers} | {"weft_placement.scorers.apart"}

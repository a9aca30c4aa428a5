"""The registry's ATTACKS.md is the attacks' own table."""

import os
from pathlib import Path

from ..integration import attacks_on_folds, attacks_on_walls

ATTACKS = (*attacks_on_walls.ATTACKS, *attacks_on_folds.ATTACKS)
PAGE = Path(__file__).parents[2] / "services/registry/ATTACKS.md"


def test_the_registrys_page_lists_every_attack() -> None:
    """`WEFT_WRITE=1` writes it."""
    text = page()
    if os.environ.get("WEFT_WRITE"):
        PAGE.write_text(text)
    assert text == PAGE.read_text()
    assert len(ATTACKS) == len({attack.tries for attack in ATTACKS}) >= 50


def page() -> str:
    about = (
        "What an approved worker may try with its real credential, and what the mesh does about it. Each row is a test"
        " (`tests/integration/test_attacks.py`, whose table this page is made of): after each, every service runs on,"
        " its fold is at the log's head, nothing but the foe's own runs and machine has got a fact, all other nodes,"
        " models and replicas are as they were, a change asked of the registry is answered, and so is a question asked"
        " of a model. The permissions by themselves are tried in `libs/testing/tests`, one subject at a time."
    )
    trust = (
        "An approved worker is trusted with the models that it is given, and with what people ask of them: it may"
        " refuse to serve, or answer nonsense. It can't reach another node's, nor decide anything. One that floods is"
        " cut off by `weft nodes remove NAME --force` within a second."
    )
    rows = [f"| {number} | {each.tries} | {each.does} |" for number, each in enumerate(ATTACKS, 1)]
    head = ["| | it tries | and the mesh |", "|---|---|---|"]
    return "\n".join(["# Attacks", about, "", trust, "", *head, *rows]) + "\n"

"""The registry's ATTACKS.md is the attacks' own table."""

import os
from pathlib import Path

from ..integration.attack import Attack
from ..integration.attacks import ATTACKS

PAGE = Path(__file__).parents[2] / "services/registry/ATTACKS.md"


def test_the_registrys_page_lists_every_attack() -> None:
    """`WEFT_WRITE=1` writes it. Sections behind it are written by hand."""
    text = page()
    _, mark, others = PAGE.read_text().partition("\n## ")
    if os.environ.get("WEFT_WRITE"):
        PAGE.write_text(text + mark + others)
    assert text == PAGE.read_text().partition("\n## ")[0]
    assert len(ATTACKS) == len({attack.tries for attack in ATTACKS}) >= 50


def got(attack: Attack) -> str:
    return f" It got, before: {attack.before}." if attack.before else ""


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
        " cut off by the registry itself, whether with leases, facts, load figures, pulls, refused messages or"
        " connections. What a flood got before, and gets now, on two busy cores (orders of size):"
    )
    floods = [
        "| flood | before | now |",
        "|---|---|---|",
        "| 70,000 to 200,000 leases a second, one connection | a change takes 1.3 to 4 s, then 504; `remove --force`"
        " 2.4 to 9 s; the server ends the registry's own connection again and again; the foe's live until it is removed"
        " | cut off after 1 to 2 s; changes asked meanwhile take 0.4 to 0.8 s |",
        "| 200,000 facts a second, three connections | every change, its removal too, is 503 while it lasts and until"
        " the 100,000 that wait are stored | cut off after 1 s; 2,048 may wait to be stored, so changes take 2 to 7 s"
        " once |",
        "| 150 connections with one credential | are held | all ended within seconds |",
    ]
    rows = [f"| {number} | {each.tries} | {each.does}{got(each)} |" for number, each in enumerate(ATTACKS, 1)]
    head = ["| | it tries | and the mesh |", "|---|---|---|"]
    return "\n".join(["# Attacks", about, "", trust, "", *floods, "", *head, *rows]) + "\n"

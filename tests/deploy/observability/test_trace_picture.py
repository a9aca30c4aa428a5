"""docs/trace.svg: a trace that was taken, through HTTP, the log, gRPC and the engine."""

import re
from pathlib import Path
from xml.etree import ElementTree

from weft_contracts.catalogue import CATALOGUE

PICTURE = Path(__file__).parents[3] / "docs" / "trace.svg"
TEXTS = ["".join(each.itertext()) for each in ElementTree.parse(PICTURE).iter("{http://www.w3.org/2000/svg}text")]


def test_it_goes_from_the_client_through_the_log_and_to_the_engine() -> None:
    way = (
        "gateway POST /api/models",
        "reconciler decide",
        "scheduler decide",
        "worker-agent append run.ready",
        "gateway POST /v1/chat/completions",
        "engine submit",
    )
    places = [TEXTS.index(each) for each in way]
    assert sorted(places) == places


def test_what_it_says_was_appended_can_be() -> None:
    appended = {found[1] for text in TEXTS if (found := re.search(r" append (\w+\.\w+)$", text))}
    assert appended
    assert appended <= {f"{entry.kind}.{entry.type}" for entry in CATALOGUE}

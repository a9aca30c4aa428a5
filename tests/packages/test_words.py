"""One name for one thing: no two classes of one name in a package, and words that went stay away."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = [path for top in ("libs", "services") for path in sorted(ROOT.glob(f"{top}/*/src/weft_*"))]
FACTS = {"Created", "Rejected", "Revoked"}
"""Facts keep their names: one of a token and one of a key, one of a node and one of a request."""
WENT = {
    "Board": "CandidateRanking",
    "Chorus": "StepBatcher",
    "Desk": "a dispatcher, or a command handler",
    "EmbeddingDesk": "UnaryDispatcher",
    "EmbeddingDispatcher": "UnaryDispatcher",
    "FrontDoor": "HotPathProtocol",
    "Gatekeeper": "AuthMiddleware",
    "Hearing": "FailureDetector",
    "ImaginedLog": "FleetLog",
    "Keeper": "Supervisor",
    "Lane": "EndpointState",
    "Noise": "RateMonitor",
    "Outlook": "PlannedFleet",
    "Patience": "Timeouts",
    "Prospect": "Unavailability",
    "QuestionDesk": "UnaryCalls",
    "Roll": "ReplicaSurvey",
    "Sessions": "LogConnection",
    "Voice": "CompletionThread",
    "Wish": "what was asked for, by its class",
    "call_roll": "survey_replicas",
    "restless": "dirty",
    "shunned": "the verb to eject",
    "taken_up": "on_restored",
    "trial": "dry run",
    "try_out": "dry run",
    "wave": "flush",
}
"""By word that went: the one that is used."""
ELSEWHERE = {("weft_worker_agent", "Board"), ("weft_api", "shunned")}
"""A circuit board is one; an HTTP field keeps its name."""


def sources(package: Path) -> Iterator[Path]:
    return (path for path in package.rglob("*.py") if "gen" not in path.relative_to(package).parts)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_a_package_has_no_two_classes_of_one_name(package: Path) -> None:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sources(package):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not (package.name == "weft_contracts" and node.name in FACTS):
                found[node.name].append(path.name)
    assert {} == {name: files for name, files in found.items() if len(files) > 1}


def names_in(source: str) -> set[str]:
    """What a source defines or says by name."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                found.add(name)
            case _:
                pass
    return found


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_words_that_went_are_not_used(package: Path) -> None:
    used = {
        (path.name, name, WENT[name])
        for path in sources(package)
        for name in names_in(path.read_text()) & WENT.keys()
        if (package.name, name) not in ELSEWHERE
    }
    assert set() == used


def test_contributing_has_the_words_that_are_used_instead() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert [] == [word for word in WENT.values() if word.isidentifier() and f"`{word}`" not in text]

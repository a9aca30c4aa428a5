"""What pages for people name is there: files, and events of the catalogue."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from weft_contracts.catalogue import CATALOGUE, OWNERS

ROOT = Path(__file__).parents[2]
TOPS = ("bench", "deploy", "docs", "libs", "models", "proto", "services", "tests", "tilt")
_PASSED_OVER = {"build", "dist", "node_modules", "__pycache__"}
_ENDINGS = "py|toml|yaml|md|html|js|css|patch|proto|sh|svg"
_NAME = re.compile(rf"`([\w./-]+\.(?:{_ENDINGS}))`")
_LINK = re.compile(r"\]\(([^)#\s:]+)(?:#[^)]*)?\)")
_EVENTS = re.compile(r"`(\w+)(?:\.<[\w.]+>)?\.\{([\w,]+)\}(\w*)`")


def _below(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name not in _PASSED_OVER and not path.name.startswith("."):
            yield from _below(path) if path.is_dir() else (path,)


FILES = [
    path.relative_to(ROOT)
    for path in (*(path for path in ROOT.iterdir() if path.is_file()), *(f for top in TOPS for f in _below(ROOT / top)))
]
PAGES = [file for file in FILES if file.suffix == ".md"]


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_file_that_a_page_names_is_there(page: Path) -> None:
    text = (ROOT / page).read_text()
    named = {name for name in _NAME.findall(text) if "/.../" not in name}
    known = {"/".join(file.parts[at:]) for file in FILES for at in range(len(file.parts))}

    assert set() == named - known
    assert [] == [link for link in _LINK.findall(text) if not (ROOT / page.parent / link).exists()]


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_a_list_of_events_names_each_once_and_none_that_there_is_not(page: Path) -> None:
    there = {(entry.kind, entry.type) for entry in CATALOGUE}
    for kind, names, end in _EVENTS.findall((ROOT / page).read_text()):
        events = [(kind, f"{name}{end}") for name in names.split(",")]
        assert len(set(events)) == len(events), events
        assert set() == set(events) - there


def test_the_gateways_page_names_every_request_that_it_appends() -> None:
    lists = _EVENTS.findall((ROOT / "services/gateway/README.md").read_text())
    named = {f"{name}{end}" for kind, names, end in lists if kind == "request" for name in names.split(",")}

    assert {entry.type for entry in CATALOGUE if entry.fact in OWNERS} == named

"""What is declared and not used yet is marked so, and the marks are true."""

import ast
from collections.abc import Iterator
from pathlib import Path

from weft_contracts import topology
from weft_contracts.catalogue import BY_TYPE, CATALOGUE, UNWRITTEN
from weft_contracts.channels import CHANNELS
from weft_contracts.facts.fact import Fact, Voided

ROOT = Path(__file__).resolve().parents[2]
FACTS = "weft_contracts.facts"
DECLARE = ("contracts", "testing")
"""Libraries that say what there is, or write it for tests."""
SOURCES = [
    *sorted(ROOT.glob("services/*/src/**/*.py")),
    *(file for file in sorted(ROOT.glob("libs/*/src/**/*.py")) if file.relative_to(ROOT).parts[1] not in DECLARE),
]


def name_of(fact: type[Fact]) -> str:
    """As others import it: from the module of its kind, which may be a package."""
    return ".".join([*fact.__module__.split(".")[: FACTS.count(".") + 2], fact.__name__])


def constructed(tree: ast.Module) -> Iterator[str]:
    """The facts that a module makes, by their full names."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith(FACTS):
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in names:
                yield names[name]
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attribute)) if name in names:
                yield f"{names[name]}.{attribute}"  # `node.Joined(…)`, or `Joined.model_validate(…)`
                yield names[name]
            case _:
                pass


def streams_imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == topology.__name__:
            yield from (alias.name for alias in node.names)


TREES = [ast.parse(file.read_text()) for file in SOURCES]


def test_a_fact_is_marked_as_unwritten_exactly_where_nothing_writes_it() -> None:
    # given
    made = {name for tree in TREES for name in constructed(tree)}
    known = {*(entry.fact for entry in CATALOGUE), Voided}
    # then
    assert {fact.__name__ for fact in known if name_of(fact) not in made} == {fact.__name__ for fact in UNWRITTEN}
    assert all(UNWRITTEN.values()), "each mark says who will write it"


def test_a_constructed_fact_is_noticed_by_whatever_name() -> None:
    """The look itself: else the test above would hold of anything."""
    written = """
from weft_contracts.facts import run
from weft_contracts.facts.replica import Evicted as Gone
from weft_contracts.facts.mesh import FormatRaised

def read(fact):
    return isinstance(fact, FormatRaised)

said = [run.Installing(epoch=1, engine="e"), Gone(why="room")]
"""
    made = set(constructed(ast.parse(written)))
    assert {f"{FACTS}.run.Installing", f"{FACTS}.replica.Evicted"} <= made
    assert f"{FACTS}.mesh.FormatRaised" not in made


def test_a_stream_is_marked_as_unread_exactly_where_nothing_reads_it() -> None:
    read = {name for tree in TREES for name in streams_imported(tree)}
    assert {stream.name for stream in topology.STREAMS if stream.name not in read} == topology.UNREAD.keys()


def test_a_stream_is_marked_as_unwritten_exactly_where_no_channel_leads_to_it() -> None:
    tops = {channel.address.split(".")[1] for channel in CHANNELS}
    unwritten = {
        stream.name for stream in topology.STREAMS if not any(each.split(".")[1] in tops for each in stream.subjects)
    }
    assert unwritten - {topology.SNAPSHOTS.name} == topology.UNWRITTEN
    assert topology.UNREAD.keys() >= topology.UNWRITTEN


def test_every_mark_stands_on_something_that_is_declared() -> None:
    assert all(fact is Voided or (fact.kind, fact.model_fields["type"].default) in BY_TYPE for fact in UNWRITTEN)

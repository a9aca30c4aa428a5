"""An engine's name stands in its profile and its adapter: no other source decides anything by it."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from weft_contracts.engines import BUILTIN

ROOT = Path(__file__).resolve().parents[2]
PROFILES = Path("libs/contracts/src/weft_contracts/engines")
ADAPTERS = Path("libs/engine/src/weft_engine/adapters")
OTHER_MEANINGS = {
    ("libs/contracts/src/weft_contracts/facts/source.py", "simulated"): "the kind of a model's source",
    ("libs/contracts/src/weft_contracts/source_keys.py", "simulated"): "the same, as one line",
    ("libs/api/src/weft_api/values.py", "simulated"): "the same, in an answer",
    ("libs/client/src/weft_client/sources.py", "simulated"): "what people type for that source",
    ("services/gateway/src/weft_gateway/domain/value_shapes.py", "simulated"): "a device's field",
    ("services/gateway/src/weft_gateway/inbound/openai/inference.py", "openai"): "the API that is answered",
    ("services/gateway/src/weft_gateway/inbound/openai/models.py", "openai"): "the same",
}
"""Where a word that is an engine's name, too, is looked at for something else: file and word, with what it is."""


def looked_at(tree: ast.AST) -> Iterator[ast.expr | ast.pattern]:
    """Every place where code compares, looks up, lists or names a constant."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, comparators=others):
                yield from (left, *others)
            case ast.Dict(keys=keys):
                yield from (key for key in keys if key is not None)
            case ast.Subscript(slice=key):
                yield key
            case ast.Set(elts=items) | ast.List(elts=items) | ast.Tuple(elts=items):
                yield from items
            case ast.MatchValue(value=value) | ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
                yield value
            case ast.Call(func=ast.Attribute(attr="get" | "startswith" | "endswith"), args=[first, *_]):
                yield first
            case _:
                pass


def names_in(source: str, names: Iterable[str]) -> set[tuple[str, int]]:
    """Which of these names are looked at, and in which lines."""
    return {
        (place.value, place.lineno)
        for place in looked_at(ast.parse(source))
        if isinstance(place, ast.Constant) and isinstance(place.value, str) and place.value in names
    }


@pytest.mark.parametrize(
    "source",
    [
        'if spec.engine == "vllm": pass',
        'if "vllm" != spec.engine: pass',
        'if engine in ("llama.cpp", "vllm"): pass',
        'SPLITTING = frozenset({"vllm"})',
        'PACKAGES = {"vllm": "vllm"}',
        'takes = words["vllm"]',
        'takes = words.get("vllm")',
        'EngineName = Literal["vllm", "simulated"]',
        'VLLM = "vllm"',
        'match engine:\n    case "vllm" | "simulated": pass',
    ],
)
def test_a_look_at_an_engines_name_is_noticed(source: str) -> None:
    assert "vllm" in {name for name, _ in names_in(source, BUILTIN)}


def test_a_name_that_is_handed_on_is_none() -> None:
    assert set() == names_in('ModelSpec(source=SimulatedSource(), engine="simulated")', BUILTIN)


def test_no_source_decides_by_an_engines_name_but_its_profile_and_its_adapter() -> None:
    sources = [
        path.relative_to(ROOT)
        for pattern in ("libs/*/src", "services/*/src")
        for folder in ROOT.glob(pattern)
        for path in sorted(folder.rglob("*.py"))
    ]
    found = {
        (str(path), name): line
        for path in sources
        if not path.is_relative_to(PROFILES) and not path.is_relative_to(ADAPTERS)
        if any(name in (text := (ROOT / path).read_text()) for name in BUILTIN)  # what lacks them needn't be parsed
        for name, line in names_in(text, BUILTIN)
    }
    assert len(sources) > 300
    assert set() == found.keys() - OTHER_MEANINGS.keys(), found
    assert set() == OTHER_MEANINGS.keys() - found.keys(), "an exception that nothing needs"

"""The release behind this tree's: a copy of its packages with what a next release would bring.

- A model's spec may bear a note. Who doesn't know that field would lose it, so the facts that hold specs have a version
  more, which is written once the upgrade is finished.
- The registry greets the mesh at each start, by a fact that older readers may pass over.

A folder with such packages goes before this tree's own on a process's PYTHONPATH.
"""

import compileall
import importlib
import re
import shutil
from collections.abc import Callable
from pathlib import Path

PACKAGES = (
    *("api", "contracts", "dataplane", "engine", "eventlog", "files", "fleet", "gateway", "gguf", "identity"),
    *("metadata_cache", "placement", "prompts", "readmodel", "reconciler", "registry", "requests", "runtime"),
    *("scheduler", "servers", "sources", "worker_agent"),
)
"""All that services and workers are made of, but for the built-in models."""
_SPECS = ("node.Assigned", "model.SpecAccepted", "request.DeployRequested", "request.TrialRequested")
_NEWEST = re.compile(r"newest: ClassVar\[int\] = (\d+)")


class NotAsItWas(AssertionError):
    """A source isn't any more as a change of it expects."""


def make(folder: Path) -> Path:
    """Lay the next release out below `folder`. Raises NotAsItWas."""
    folder.mkdir(parents=True)
    for name in PACKAGES:
        package = importlib.import_module(f"weft_{name}")
        assert package.__file__ is not None
        own = Path(package.__file__).parent
        shutil.copytree(own, folder / own.name, ignore=shutil.ignore_patterns("__pycache__"))
    contracts = folder / "weft_contracts"
    newest = _newest(contracts / "facts/model.py")
    _edit(contracts / "catalogue.py", *(_version_of(each, newest) for each in _SPECS), _greeted_is_known)
    for file in ("facts/model.py", "facts/node.py", "facts/request/reconciler.py"):
        _edit(contracts / file, lambda text: _NEWEST.sub(f"newest: ClassVar[int] = {newest + 1}", text))
    _edit(contracts / "facts/fact.py", _each(f"le={newest})] = 1", f"le={newest + 1})] = 1"))
    _edit(
        contracts / "facts/values.py",
        _each(
            "    context_tokens: Annotated[int, Field(ge=1)]",
            f"    note: {_NOTE}\n    context_tokens: Annotated[int, Field(ge=1)]",
        ),
        _each(
            "        if isinstance(self.source, F", f"{_NEEDS.format(newest + 1)}        if isinstance(self.source, F"
        ),
    )
    _edit(contracts / "formats.py", _each('        2: "lists', f'        {newest + 1}: "notes",\n        2: "lists'))
    _edit(contracts / "facts/mesh.py", _each("class BrakeSet(", f"{_GREETED}class BrakeSet("), _in_union)
    body = folder / "weft_gateway/inbound/admin/bodies.py"
    _edit(body, _each("    concurrency: Annotated[int", '    note: str = ""\n    concurrency: Annotated[int'))
    _edit(
        folder / "weft_registry/app.py",
        _each('    runtime.spawn("topology"', f'{_GREETS}    runtime.spawn("topology"'),
    )
    assert compileall.compile_dir(folder, quiet=1, workers=1)
    return folder


_NOTE = 'Annotated[str, Field(exclude_if=lambda note: not note)] = ""'
_NEEDS = """        if self.note:
            return {}
"""
_GREETED = '''class Greeted(_Mesh, frozen=True):
    """A registry of this release has started."""

    type: Literal["greeted"] = "greeted"


'''
_GREETS = """    async def greet() -> None:
        load = __import__("importlib").import_module
        mesh, commit, subjects = (load(f"weft_contracts.{each}") for each in ("facts.mesh", "commit", "subjects"))
        await projection.caught_up.wait()
        cause = commit.Cause("greeting")
        await runtime.log.append(commit.Commit(subjects.MESH, (mesh.Greeted(),), None, cause))
        await __import__("asyncio").Event().wait()

    runtime.spawn("greeting", greet())
"""


def _newest(file: Path) -> int:
    found = _NEWEST.search(file.read_text())
    if found is None:
        raise NotAsItWas(f"{file.name} names no newest version of a fact with a spec")
    return int(found.group(1))


def _edit(file: Path, *changes: Callable[[str], str]) -> None:
    text = file.read_text()
    for change in changes:
        changed = change(text)
        if changed == text:
            raise NotAsItWas(f"the next release changes {file.name}, which isn't any more as it was")
        text = changed
    file.write_text(text)


def _each(was: str, becomes: str) -> Callable[[str], str]:
    return lambda text: text.replace(was, becomes)


def _version_of(fact: str, newest: int) -> Callable[[str], str]:
    """Of one entry of the catalogue."""
    entry = re.compile(rf"(Entry\({re.escape(fact)}, .*version=){newest}\)")
    return lambda text: entry.sub(rf"\g<1>{newest + 1})", text)


def _greeted_is_known(text: str) -> str:
    entry = "    Entry(mesh.FormatRaised, "
    return text.replace(entry, f'    Entry(mesh.Greeted, ("registry",), 1, ignorable=True),\n{entry}')


def _in_union(text: str) -> str:
    return text.replace("    Founded\n", "    Founded\n    | Greeted\n")

"""`weft dev`: whom a change of files concerns, in this very tree, and when what is broken waits."""

import asyncio
import subprocess
import sys
from contextlib import aclosing
from pathlib import Path

import pytest
from weft_client.failure import Failure
from weft_devtools import tree
from weft_devtools.dev import affected, members, watching
from weft_devtools.dev.affected import OF_THE_SUPERVISOR, Affected
from weft_devtools.dev.pending import Pending

OF_THIS = members.read(tree.root())
SERVICES = frozenset({"gateway", "metadata-cache", "reconciler", "registry", "scheduler"})
AGENT = "services/worker-agent/src/weft_worker_agent"


def by(*files: str) -> Affected:
    for file in files:
        assert (tree.root() / file).exists(), file
    return affected.affected(OF_THIS, files)


@pytest.mark.parametrize(
    ("file", "concerns"),
    [
        ("services/scheduler/src/weft_scheduler/app.py", Affected(frozenset({"scheduler"}))),
        ("services/gateway/src/weft_gateway/inbound/page", Affected(frozenset({"gateway"}))),
        (
            "libs/placement/src/weft_placement/claim.py",
            Affected(frozenset({"gateway", "reconciler", "registry", "scheduler"})),
        ),
        ("libs/runtime/src/weft_runtime/logs.py", Affected(SERVICES, agents=True)),
        ("libs/runtime/src/weft_runtime/secret_pipe.py", Affected(SERVICES, workers=True)),
        ("libs/contracts/src/weft_contracts/ids.py", Affected(SERVICES, workers=True)),
        ("libs/engine/src/weft_engine/host.py", Affected(workers=True)),
        (f"{AGENT}/app.py", Affected(agents=True)),
        (f"{AGENT}/__main__.py", Affected(workers=True)),
        (f"{AGENT}/outbound/supervisor/child.py", Affected(workers=True)),
        ("models/tiny/src/weft_tiny", Affected(agents=True)),
        ("libs/embedded/src/weft_embedded/up.py", Affected(launcher=True)),
        ("services/scheduler/pyproject.toml", Affected(environment=frozenset({"services/scheduler/pyproject.toml"}))),
        ("requirements.lock", Affected(environment=frozenset({"requirements.lock"}))),
        ("services/scheduler/README.md", Affected()),
        ("services/scheduler/tests", Affected()),
        ("libs/testing/src/weft_testing/story.py", Affected()),
    ],
)
def test_a_change_concerns_those_who_stand_on_it_and_nobody_else(file: str, concerns: Affected) -> None:
    assert concerns == by(file)


def test_changes_at_once_concern_all_of_theirs() -> None:
    files = ("services/registry/src/weft_registry/app.py", f"{AGENT}/app.py", "pyproject.toml")
    expected = Affected(frozenset({"registry"}), agents=True, environment=frozenset({"pyproject.toml"}))
    assert expected == by(*files)


def test_what_the_workers_supervisor_loads_is_known() -> None:
    program = (
        "import sys, weft_worker_agent.__main__\n"
        "from weft_worker_agent.outbound.supervisor import join_token, options, supervisor\n"
        "for name, module in list(sys.modules.items()):\n"
        "    if name.startswith('weft_') and module.__file__ and not module.__file__.endswith('__init__.py'):\n"
        "        print(module.__file__)\n"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    loaded = {Path(line).relative_to(tree.root()).as_posix() for line in said.split()}

    assert set() == {each for each in loaded if not each.startswith(OF_THE_SUPERVISOR)}
    assert set() == {each for each in OF_THE_SUPERVISOR if not any(one.startswith(each) for one in loaded)}


@pytest.fixture
def small_tree(tmp_path: Path) -> Path:
    """Two services on one library."""
    for folder, needs in (("libs/words", []), ("services/left", ["weft-words"]), ("services/right", ["weft-words>=1"])):
        source = tmp_path / folder / "src"
        source.mkdir(parents=True)
        (source / "rules.py").write_text("x = 1\n")
        name = f"weft-{folder.partition('/')[2]}"
        (tmp_path / folder / "pyproject.toml").write_text(f'[project]\nname = "{name}"\ndependencies = {needs}\n')
    (tmp_path / "models").mkdir()
    return tmp_path


LEFT, RIGHT, WORDS = "services/left/src/rules.py", "services/right/src/rules.py", "libs/words/src/rules.py"


def test_a_service_whose_file_is_broken_waits_for_the_save_that_mends_it(small_tree: Path) -> None:
    pending = Pending(small_tree, members.read(small_tree))
    # given
    (small_tree / LEFT).write_text("x = (\n")
    # when it is saved, and another service's file after it
    found, faults = pending.changed([LEFT])
    beside, again = pending.changed([RIGHT])
    # then
    assert (Affected(), [f"{LEFT}:1: '(' was never closed"]) == (found, faults)
    assert (Affected(frozenset({"right"})), faults) == (beside, again)
    # and when it is mended
    (small_tree / LEFT).write_text("x = 2\n")
    assert (Affected(frozenset({"left"})), []) == pending.changed([LEFT])
    assert (Affected(), []) == pending.changed([])


def test_a_broken_library_keeps_all_that_stand_on_it_as_they_are(small_tree: Path) -> None:
    pending = Pending(small_tree, members.read(small_tree))
    (small_tree / WORDS).write_bytes(b"x = '\0'\n")

    found, faults = pending.changed([WORDS, LEFT])

    assert (Affected(), 1) == (found, len(faults))
    (small_tree / WORDS).unlink()
    assert (Affected(frozenset({"left", "right"})), []) == pending.changed([WORDS])


def test_a_member_that_says_nothing_of_itself_is_named(small_tree: Path) -> None:
    (small_tree / "services/left/pyproject.toml").write_text("[project\n")
    with pytest.raises(Failure, match=r"services/left/pyproject\.toml says of no package what it needs"):
        members.read(small_tree)


async def test_saves_of_one_moment_come_together_and_a_changed_lock_with_them(small_tree: Path) -> None:
    async with aclosing(watching.changes(small_tree)) as batches:
        coming = asyncio.create_task(anext(batches))
        seen: set[str] = set()
        async with asyncio.timeout(30):
            while not coming.done():  # until the watch has begun
                await asyncio.to_thread(_save, small_tree)
                await asyncio.sleep(0.05)
            seen |= coming.result()
            await asyncio.to_thread((small_tree / "requirements.lock").write_text, "one==2\n")
            while not {"requirements.lock", LEFT, RIGHT} <= seen:
                seen |= await anext(batches)
    assert {"requirements.lock", LEFT, RIGHT} == seen


def _save(root: Path) -> None:
    for name in (LEFT, RIGHT):
        (root / name).write_text("x = 3\n")
    (root / "services/left/src/__pycache__").mkdir(exist_ok=True)
    (root / "services/left/src/__pycache__/rules.pyc").write_bytes(b"")

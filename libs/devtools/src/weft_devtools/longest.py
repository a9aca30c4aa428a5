"""In which order pytest is given the tests: what takes longest first, so that no worker is left alone with it."""

from pathlib import Path

from weft_client.failure import Failure

FOLDERS = ("tests", "services", "libs", "models")
"""Stories first: a file of them takes half a minute, most others a second."""
LONGEST = (
    "tests/deploy/compose/test_compose_runs.py",
    "tests/integration/test_backend_on_demand.py",
    "tests/integration/test_log_away.py",
    "tests/integration/test_api_document.py",
    "libs/engine/tests/test_conformance.py",
    "libs/engine/tests/test_vllm.py",
    "libs/engine/tests/test_vllm_parsers.py",
    "libs/engine/tests/test_vllm_embeddings.py",
    "libs/engine/tests/test_vllm_rerank.py",
    "libs/engine/tests/test_vllm_lora.py",
    "tests/integration/test_attacks.py",
    "tests/integration/test_upgrade_under_load.py",
    "tests/integration/test_leaving_under_load.py",
    "tests/integration/test_little_disk.py",
    "tests/integration/test_bare_install.py",
    "tests/integration/test_install_from_index.py",
    "tests/integration/test_snapshots.py",
    "tests/integration/test_skewed_clocks.py",
    "tests/integration/test_streams_and_ends.py",
    "tests/integration/test_killed_process.py",
    "tests/integration/test_thousand_chats.py",
    "tests/integration/test_many_nodes.py",
    "tests/packages/test_installed_alone.py",
)
"""Of the slow ones, those of more than a minute. An install and a file that start vLLM are begun side by side."""
_MARK = "mark.slow"


def slow_first(root: Path) -> list[str]:
    """The files that have slow tests, relative to the root; the others needn't be imported to leave them out.

    Raises:
        Failure: one of the longest is gone, or isn't slow any more.
    """
    found = [
        file.relative_to(root).as_posix()
        for folder in FOLDERS
        for file in sorted((root / folder).rglob("test_*.py"))
        if _MARK in file.read_text()
    ]
    if gone := sorted(set(LONGEST) - set(found)):
        raise Failure(f"these have no slow tests: {', '.join(gone)}; take them out of {Path(__file__).name}")
    return [*LONGEST, *(each for each in found if each not in LONGEST)]
